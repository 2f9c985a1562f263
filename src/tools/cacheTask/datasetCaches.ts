/** @file The caches of a dataset's tasks: a share of their shards written by this process, and their manifests. */
import { resolve } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { ConfiguredExperiment } from '../../cli/index.js';
import { type AnyConfig, build, type Config, classOf, copyWith, iterate } from '../../hparams/index.js';
import {
  type CacheManifest,
  type DoneShard,
  finishCache,
  numShardsOf,
  SeqioInput,
  type ShardShare,
  type TaskCache,
  writeShards,
} from '../../inputs/index.js';
import { UsageError } from '../../system/text/index.js';
import { findDataset } from '../datasets.js';

/** Choice of caches. */
export interface CacheOptions {
  /** Name or path of the dataset; undefined for the training dataset. */
  readonly dataset?: string;
  /** Directory of the caches; undefined for the dataset's own. */
  readonly out?: string;
  /** Number of shards of each task; undefined for one by its size. */
  readonly shards?: number;
}

/** The cache of a task. */
export interface TaskResult {
  readonly folder: string;
  readonly split: string;
  readonly shards: number;
  /** Shards that are there. */
  readonly finished: number;
  /** Absent until all shards are there. */
  readonly manifest?: CacheManifest;
}

/** A task's cache, with its shards' place among those of all tasks. */
interface DatasetCache {
  readonly cache: TaskCache;
  readonly shards: number;
  /** Number of the shards of the tasks before it. */
  readonly before: number;
}

const isSeqio = (config: AnyConfig): config is Config<SeqioInput> => {
  const cls = classOf(config);
  return cls === SeqioInput || cls.prototype instanceof SeqioInput;
};

/** The caches of a dataset's tasks, each once, with their sources open. */
export class DatasetCaches {
  /** Name of the dataset. */
  readonly dataset: string;
  readonly #caches: readonly DatasetCache[];

  /** @throws UsageError for a dataset without tasks; InputError for a source that can't be read. */
  constructor(configured: ConfiguredExperiment, { dataset: wanted, out, shards }: CacheOptions) {
    const { name, config: whole } = findDataset(configured, wanted);
    this.dataset = name;
    const configs = iterate(whole).flatMap(({ config }) => (isSeqio(config) ? [config] : []));
    if (configs.length === 0)
      throw new UsageError(
        `Dataset '${name}' of ${configured.name} is a ${classOf(whole).name}, which has no tasks to cache. Give the ` +
          'dataset of a SeqioInput.',
      );
    const caches = configs.flatMap((config) => {
      // A task that requires its cache can be built before there is one; nothing reads it.
      const input = build(copyWith(config, { useCached: true }));
      return input.taskCaches(resolve(out ?? input.hp.cacheDirectory));
    });
    const distinct = new Map(caches.map((cache) => [cache.folder, cache]));
    let before = 0;
    this.#caches = [...distinct.values()].map((cache) => {
      const one = { cache, shards: numShardsOf(cache, shards), before };
      before += one.shards;
      return one;
    });
  }

  /** Number of a share's shards; shards are dealt out over all tasks. */
  shardsOf({ index, count }: ShardShare): number {
    const all = this.#caches.reduce((sum, { shards }) => sum + shards, 0);
    return Math.max(0, Math.ceil((all - index) / count));
  }

  /**
   * Writes a share's shards, those that are whole already aside.
   *
   * @param done is told of each.
   * @throws InputError for broken records; ConfigError where a preprocessor may not be cached; the system's errors.
   */
  async write(share: ShardShare, done: (shard: DoneShard) => void): Promise<void> {
    const { index, count } = share;
    for (const { cache, shards, before } of this.#caches) {
      const own = { index: (((index - before) % count) + count) % count, count };
      for (const shard of writeShards(cache, shards, own)) {
        done(shard);
        // Signals, and the end of a parent, are noticed between shards.
        await setImmediate();
      }
    }
  }

  /** Writes the manifest of each task whose shards are all there. @throws InputError for a task that gives no example */
  finish(): TaskResult[] {
    return this.#caches.map(({ cache, shards }) => {
      const { folder, subject } = cache;
      return { folder, split: subject.split, shards, ...finishCache(cache, shards) };
    });
  }

  close(): void {
    for (const { cache } of this.#caches) cache.subject.records.close();
  }
}
