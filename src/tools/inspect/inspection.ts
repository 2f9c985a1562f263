/** @file Inspection of a dataset: batches read, examples, statistics, pictures, the check of shards. */
import { build, type Config, classOf } from '../../hparams/index.js';
import { type BaseInput, type Batch, InputError } from '../../inputs/index.js';
import { readBatches } from '../datasets.js';
import { type ArrayRange, ArrayRanges } from './arrayRanges.js';
import { type Example, examplesOf } from './examples.js';
import { labelsBeside, type PictureGrid, pictureGrid, picturesOf } from './pictureGrid.js';
import { sequencesOf, type Vocabulary, vocabularyOf } from './sequences.js';
import { checkShards, type ShardCheck } from './shardCheck.js';
import { TokenCounter, type TokenStatistics } from './tokenStatistics.js';

/** Scope of an inspection. */
export interface InspectOptions {
  /** Examples to show. */
  readonly count: number;
  /** Batches that statistics are of; more are read where the examples need them. */
  readonly batches: number;
  /** Batches of one host whose rows are compared with those of several; 0: none, Infinity: all. */
  readonly shards: number;
  /** Whether to draw images. */
  readonly pictures: boolean;
}

/** Examples and statistics of an input. */
export interface Inspection {
  /** Class of the input. */
  readonly input: string;
  readonly isTraining: boolean;
  readonly isEndless: boolean;
  readonly batchSize: number;
  readonly batchPaddingSize: number;
  /** Batches read, and whether the data ended with them. */
  readonly batches: number;
  readonly isWhole: boolean;
  readonly arrays: readonly ArrayRange[];
  readonly tokens: readonly TokenStatistics[];
  readonly examples: readonly Example[];
  /** By the path of the images. */
  readonly pictures: ReadonlyMap<string, PictureGrid>;
  readonly shards: ShardCheck | null;
  /** Defects of the data, a line each. */
  readonly problems: readonly string[];
}

function problemsOf(arrays: readonly ArrayRange[], tokens: readonly TokenStatistics[]): string[] {
  return [
    ...arrays
      .filter(({ nonFinite }) => nonFinite > 0)
      .map(({ path, nonFinite }) => `${path}: ${nonFinite} of the values are NaN or infinite.`),
    ...tokens
      .filter(({ outside }) => outside > 0)
      .map(({ path, outside, vocabSize }) => {
        const range = vocabSize === null ? 'are negative' : `are not from 0 to ${vocabSize - 1}`;
        return `${path}: ${outside} of the ids and labels ${range}.`;
      }),
  ];
}

/** Reads a dataset. @throws InputError for invalid data, and for a dataset without any */
export async function inspectInput(config: Config<BaseInput>, options: InspectOptions): Promise<Inspection> {
  const { count, batches, shards, pictures } = options;
  const input = build(config);
  const limit = Math.max(batches, Math.ceil(count / input.batchSize));
  const ranges = new ArrayRanges();
  const counters = new Map<string, TokenCounter>();
  const vocabularies = new Map<string, Vocabulary>();
  const withImages: Batch[] = [];
  const examples: Example[] = [];
  let read = 0;
  try {
    for await (const batch of readBatches(input, limit)) {
      ranges.add(batch);
      const sequences = sequencesOf(batch);
      for (const each of sequences) {
        const { path } = each;
        const vocabulary = vocabularies.get(path) ?? vocabularyOf(input, path);
        vocabularies.set(path, vocabulary);
        const counter = counters.get(path) ?? new TokenCounter(path, vocabulary);
        counters.set(path, counter);
        counter.add(each);
      }
      if (pictures) withImages.push(batch);
      const described = {
        sequences,
        vocabularies,
        classNamesFor: (path: string) => input.classNamesFor(path),
      };
      examples.push(...examplesOf(batch, read, count - examples.length, described));
      read++;
    }
  } finally {
    await input.close();
  }
  if (read === 0) throw new InputError(`Input '${input.name}' has no data: it ends before the first batch.`);
  const tokens = [...counters.values()].map(({ statistics }) => statistics);
  const { isTraining, batchSize, batchPaddingSize } = input.hp;
  return {
    ...{ input: classOf(config).name, isTraining, isEndless: input.isEndless, batchSize, batchPaddingSize },
    ...{ batches: read, isWhole: read < limit, arrays: ranges.ranges, tokens, examples },
    pictures: new Map(
      [...picturesOf(withImages)].map(([path, images]) => [
        path,
        pictureGrid(images, input.classNamesFor(labelsBeside(path))),
      ]),
    ),
    shards: shards === 0 ? null : await checkShards(config, shards),
    problems: problemsOf(ranges.ranges, tokens),
  };
}
