/** @file The cached examples of a task: results of its cached preprocessors. */
import { ConfigError } from '../../hparams/index.js';
import type { RecordTable } from '../records/recordTable.js';
import type { OnError, SkippedExamples } from '../skippedExamples.js';
import type { ExampleDraws } from './exampleDraws.js';
import { Pipeline } from './pipeline.js';
import type { Example, PreprocessContext, Preprocessor } from './preprocessor.js';
import type { Task } from './seqioTask.js';

/** A cached example. */
export interface CachedExample {
  readonly example: Example;
  /** Number of its record; of several, of the last. */
  readonly record: number;
}

/** Consecutive records of a table. */
export interface RecordRange {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/**
 * Yields the results of a task's cached preprocessors.
 *
 * @param skipped counts the records left out by `onError`.
 * @throws InputError with the place of a broken record; ConfigError for a preprocessor that cannot be cached.
 */
export function* cachedExamples(
  { stages, numCachedStages, hp }: Task,
  records: RecordTable,
  { from, to }: RecordRange,
  onError: OnError,
  skipped: SkippedExamples,
): Generator<CachedExample> {
  const attempt = <T>(make: () => T, examples = 1) => skipped.attempt(onError, make, examples);
  const cacheable = stages
    .slice(0, numCachedStages)
    .map((stage, s) => cacheableStage(stage, `preprocessors[${s}] (${nameOf(hp.preprocessors[s]!)})`));
  let made: Example[] = [];
  const emit = ({ example }: { readonly example: Example }) => made.push(example);
  const pipeline = new Pipeline(cacheable, { features: hp.features, lengths: {} }, emit, attempt);
  let skippedBefore = 0;
  for (let record = from; record < to; record++) {
    const place = () => records.place(record);
    const example = attempt(() => records.read(record));
    // Nothing draws from the key.
    if (example !== undefined) pipeline.push({ example, place, key: [0, 0] });
    if (record === to - 1) pipeline.flush();
    if (made.length > 0) skippedBefore = skipped.count;
    else skipped.check(skipped.count - skippedBefore);
    for (const each of made) yield { example: each, record };
    made = [];
  }
}

function nameOf(given: Task['hp']['preprocessors'][number]): string {
  return typeof given === 'function' ? given.name || 'a function' : given.constructor.name;
}

/** A preprocessor that fails if it uses state that differs between runs. */
function cacheableStage(stage: Preprocessor, name: string): Preprocessor {
  const refuse = (what: string): never => {
    throw new ConfigError(
      `${name} ${what}, so its results cannot be cached. Put CacheDatasetPlaceholder before it, so that it runs each ` +
        'time that examples are read.',
    );
  };
  const draws = new Proxy({} as ExampleDraws, {
    get: () => refuse('draws at random, anew in each epoch'),
  });
  const lengths = new Proxy({} as PreprocessContext['lengths'], {
    get: (_, feature) =>
      refuse(`reads taskFeatureLengths['${String(feature)}'], which each input sets for itself`),
  });
  return {
    examplesAtOnce: stage.examplesAtOnce,
    isOneToOne: stage.isOneToOne,
    apply: (examples, { features }) => stage.apply(examples, { features, draws, lengths }),
  };
}
