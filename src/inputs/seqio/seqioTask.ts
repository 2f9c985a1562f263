/** @file Task: a source, the steps that make features of its records, and its features (seqio.Task). */
import { z } from 'zod';
import {
  type Config,
  ConfigError,
  Configurable,
  deepCopy,
  instance,
  iterate,
  unset,
} from '../../hparams/index.js';
import type { DataIdentity } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import { BaseRecordSource } from '../records/recordSources.js';
import type { RecordTable } from '../records/recordTable.js';
import { CacheDatasetPlaceholder } from './cacheDatasetPlaceholder.js';
import { Feature } from './feature.js';
import { metricFields } from './metrics/taskMetric.js';
import { type Example, type Preprocessor, preprocessorOf, preprocessors, tokensOf } from './preprocessor.js';

/** A task with the share of the examples that it gives. */
export interface WeightedTask {
  /** Names of the parts of the mixture that lead to the task, joined by '/'. */
  readonly name: string;
  readonly task: Task;
  /** Share of the examples; those of all tasks add up to 1. */
  readonly share: number;
}

/** Base of a SeqioInput's data: a task, or a mixture of tasks. */
export abstract class MixtureOrTask extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Number of records of a split. @throws InputError for a source that can't be read */
  abstract numRecords(split: string): number;

  /** The tasks of a split with their shares, each task once. @throws InputError */
  abstract weightedTasks(split: string): readonly WeightedTask[];

  /** The tasks, each as often as the mixture has it; reads nothing. */
  abstract tasks(): readonly Task[];

  /** The configs of the tasks, in their order. @param config the config of this object */
  abstract configsOf(config: Config<MixtureOrTask>): readonly Config<Task>[];
}

/** Opens the cached examples of a split that has these records. @throws InputError if there are none */
type OpenCached = (records: RecordTable) => RecordTable;

/** Examples of one source. */
export class Task extends MixtureOrTask.with({
  source: instance(BaseRecordSource, null).describe('The records, by split.'),
  preprocessors,
  ...metricFields,
  features: z
    .record(z.string(), instance(Feature, null))
    .refine((features) => Object.keys(features).length > 0, { error: 'expected at least one feature' })
    .describe("The preprocessors' features by name: `targets`, and `inputs` if there are any."),
}) {
  readonly #tables = new Map<string, RecordTable>();
  #stages: readonly Preprocessor[] | undefined;
  #openCached: OpenCached | undefined;

  protected override setup(): void {
    const placeholders = this.#placeholders;
    if (placeholders.length > 1)
      throw new ConfigError(
        `Task.preprocessors: expected at most one CacheDatasetPlaceholder, got ${placeholders.length}. Keep the one up to ` +
          'which examples are to be cached.',
      );
  }

  /** The preprocessors as the pipeline runs them. */
  get stages(): readonly Preprocessor[] {
    this.#stages ??= this.hp.preprocessors.map(preprocessorOf);
    return this.#stages;
  }

  /** The target of metrics: the text of the feature `targets`, postprocessed. */
  targetOf(example: Example): unknown {
    // Ids below 0 have no weight; their magnitudes are the ids.
    return this.#postprocessed(tokensOf(example, 'targets').map(Math.abs), example, true);
  }

  /** The prediction for metrics, from the ids that a model decoded for an example. */
  predictionOf(ids: ArrayLike<number>, example: Example): unknown {
    return this.#postprocessed(ids, example, false);
  }

  get #placeholders(): readonly CacheDatasetPlaceholder[] {
    return this.hp.preprocessors.filter((given) => given instanceof CacheDatasetPlaceholder);
  }

  /** Number of preprocessors whose results a cache holds: those before a CacheDatasetPlaceholder, or all. */
  get numCachedStages(): number {
    const [placeholder] = this.#placeholders;
    return placeholder === undefined ? this.stages.length : this.hp.preprocessors.indexOf(placeholder);
  }

  /** Whether the task may be read from a cache only. */
  get requiresCache(): boolean {
    return this.#placeholders.some(({ hp }) => hp.required);
  }

  /** Has `open` give cached examples. */
  readCached(openCached: OpenCached): void {
    this.#openCached = openCached;
  }

  /** Number of the first preprocessor that examples from `open` have not passed. */
  get firstStage(): number {
    return this.#openCached === undefined ? 0 : this.numCachedStages;
  }

  /** The records of a split, or its cached examples. @throws InputError for a source, or a cache, that can't be read */
  open(split: string): RecordTable {
    const opened = this.#tables.get(split);
    if (opened !== undefined) return opened;
    const records = this.hp.source.open(split);
    try {
      const table = this.#openCached?.(records) ?? records;
      this.#tables.set(split, table);
      return table;
    } catch (error) {
      records.close();
      throw error;
    }
  }

  /** Closes the opened source. */
  close(): void {
    for (const table of this.#tables.values()) table.close();
    this.#tables.clear();
  }

  #postprocessed(ids: ArrayLike<number>, example: Example, isTarget: boolean): unknown {
    const { features, postprocessor } = this.hp;
    const decoded = features.targets!.decodeUntilEos(ids);
    return postprocessor === null ? decoded : postprocessor(decoded, { example, isTarget });
  }

  override numRecords(split: string): number {
    return this.open(split).numRecords;
  }

  override weightedTasks(): readonly WeightedTask[] {
    return [{ name: 'task', task: this, share: 1 }];
  }

  override tasks(): readonly Task[] {
    return [this];
  }

  override configsOf(config: Config<Task>): readonly Config<Task>[] {
    return [config];
  }
}

/** The feature that models answer with: `targets`, or of pairs the `chosen` ones, which share their vocabulary with the others. */
export const answerFeature = ({ features }: Task['hp']): Feature =>
  features.targets ?? features.chosen ?? Object.values(features).at(-1)!;

/** Vocabulary and tokenizer of tasks that share them. */
export function vocabularyIdentity([task]: readonly Task[]): DataIdentity {
  const { features } = task!.hp;
  const { tokenizer } = answerFeature(task!.hp).hp;
  const vocabSize = Math.max(...Object.values(features).map((feature) => feature.vocabSize));
  const [identity, learned] = [tokenizer.identity(), tokenizer.learned()];
  return { vocabSize, tokenizer: { class: tokenizer.constructor.name, identity, learned } };
}

/** A copy without metrics, which do not affect rows. */
export function withoutMetrics(config: Config<MixtureOrTask>): Config<MixtureOrTask> {
  const copied = deepCopy(config);
  const configs = [...iterate(copied)].map(({ config: part }) => part);
  for (const part of configs.filter((part) => 'predictMetrics' in part))
    for (const field of Object.keys(metricFields)) unset(part, field as never);
  return copied;
}

/** @throws InputError where tasks have different vocabularies, for ids would mean different things */
export function checkVocabularies(tasks: readonly Task[]): void {
  const seen = new Map<string, string>();
  for (const { hp } of tasks) {
    for (const [name, { hp: feature }] of Object.entries(hp.features)) {
      const { tokenizer, extraIds } = feature;
      if (tokenizer.needsCorpus)
        throw new InputError(
          `feature '${name}': ${tokenizer.constructor.name} has no vocabulary. Give it one.`,
        );
      const identity = `${tokenizer.identity()}${extraIds > 0 ? ` and ${extraIds} extra ids` : ''}`;
      const before = seen.get(name) ?? identity;
      if (before !== identity)
        throw new InputError(
          `feature '${name}' has the vocabularies ${before} and ${identity}: a mixture's tasks need the same.`,
        );
      seen.set(name, identity);
    }
  }
}
