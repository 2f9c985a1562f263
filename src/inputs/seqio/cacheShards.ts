/** @file Writing of a task's cache, shard by shard: any process may write any shard, and each shard is written once. */
import { existsSync, readdirSync } from 'node:fs';
import { makeDirectory, removeTemporaries, writeWhole } from '../../files/index.js';
import { InputError, placed } from '../inputErrors.js';
import type { JsonValue } from '../jsonValue.js';
import { openRecordFile, RecordFileWriter } from '../records/recordFile.js';
import { NONE_SKIPPED, type Skipped, SkippedExamples } from '../skippedExamples.js';
import { cachedExamples } from './cachedExamples.js';
import type { Example } from './preprocessor.js';
import {
  addStatistics,
  type CacheManifest,
  type CacheStatistics,
  type ShardEntry,
  shardCountOf,
  shardFile,
  type TaskCache,
} from './taskCache.js';

/** Records' bytes of a shard, unless a number of shards is given. */
const BYTES_OF_SHARD = 64 * 2 ** 20;
/** Records of a shard, for sources without files. */
const RECORDS_OF_SHARD = 100_000;
/** A reader has all shards open. */
const MOST_SHARDS = 256;

/** Footer of a shard's file. */
interface AboutShard {
  readonly fingerprint: string;
  readonly statistics: CacheStatistics;
}

/** A shard that is whole. */
export interface DoneShard extends ShardEntry {
  /** Whether it was there before. */
  readonly isKept: boolean;
  /** The broken records that were left out while it was written. */
  readonly skipped: Skipped;
}

/** The shards s with s mod `count` = `index`. */
export interface ShardShare {
  readonly index: number;
  readonly count: number;
}

/**
 * Writes those of n shards of a share that are not there whole, and yields each shard of the share.
 *
 * @throws as `writeShard`.
 */
export function* writeShards(
  cache: TaskCache,
  n: number,
  { index, count }: ShardShare,
): Generator<DoneShard> {
  makeDirectory(cache.folder);
  // Left by killed processes.
  removeTemporaries(cache.folder);
  for (let s = index; s < n; s += count) {
    const kept = finishedShard(cache, s, n);
    yield kept !== undefined && isSound(cache, kept)
      ? { ...kept, isKept: true, skipped: NONE_SKIPPED }
      : writeShard(cache, s, n);
  }
}

/**
 * The number of shards of a cache: that of existing shards, else the requested one, else by the size of the source.
 *
 * @throws InputError if existing shards belong to another number.
 */
export function numShardsOf(cache: TaskCache, wanted: number | undefined): number {
  const { records, command } = cache.subject;
  const names = existsSync(cache.folder) ? readdirSync(cache.folder) : [];
  const there = names.map(shardCountOf).find((count) => count !== undefined);
  if (there !== undefined && wanted !== undefined && there !== wanted)
    throw new InputError(
      `${cache.folder} has shards of ${there}, and ${wanted} are asked for. Give ${there}, or remove the folder and run ` +
        `${command} again.`,
    );
  const bytes = records.files.reduce((sum, { size }) => sum + size, 0);
  const bySize = bytes === 0 ? records.numRecords / RECORDS_OF_SHARD : bytes / BYTES_OF_SHARD;
  return there ?? wanted ?? Math.max(1, Math.min(MOST_SHARDS, records.numRecords, Math.ceil(bySize)));
}

/** A shard of a cache that is whole; undefined where it is missing, is another's or has a damaged end. */
function finishedShard(cache: TaskCache, s: number, n: number): ShardEntry | undefined {
  const file = shardFile(s, n);
  if (!existsSync(cache.pathOf(file))) return undefined;
  try {
    const records = openRecordFile(cache.pathOf(file));
    records.close();
    const { fingerprint, statistics } = records.about as unknown as AboutShard;
    return fingerprint === cache.fingerprint ? { file, bytes: records.size, statistics } : undefined;
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

/** Whether all records of a finished shard are intact. */
function isSound(cache: TaskCache, { file }: ShardEntry): boolean {
  const shard = openRecordFile(cache.pathOf(file));
  try {
    for (let i = 0; i < shard.numRecords; i++) shard.position(i);
    return true;
  } catch (error) {
    if (error instanceof InputError) return false;
    throw error;
  } finally {
    shard.close();
  }
}

/**
 * Writes shard s of n; it has its name once it is whole.
 *
 * @throws InputError with the place of a broken record; ConfigError where a preprocessor may not be cached; the system's error
 *   where it can't be written. Then nothing of it is left.
 */
function writeShard(cache: TaskCache, s: number, n: number): DoneShard {
  const { task, records, onError } = cache.subject;
  const file = shardFile(s, n);
  const skipped = new SkippedExamples();
  const counter = new ExampleCounter(Object.keys(task.hp.features));
  const writer = new RecordFileWriter(cache.pathOf(file));
  try {
    for (const { example, record } of cachedExamples(task, records, cache.rangeOf(s, n), onError, skipped)) {
      const place = () => records.place(record);
      placed(place, () => writer.add(example, record));
      counter.add(example);
    }
    const left = skipped.take();
    const statistics = counter.statistics(left.count);
    const about: AboutShard = { fingerprint: cache.fingerprint, statistics };
    writer.finish(`${cache.fingerprint}-${s}-${n}`, about as unknown as JsonValue);
    return { ...finishedShard(cache, s, n)!, isKept: false, skipped: left };
  } finally {
    writer.discard();
  }
}

/** Writes the manifest where all n shards are there; else counts those that are. @throws the system's error */
export function finishCache(
  cache: TaskCache,
  n: number,
): { readonly finished: number; readonly manifest?: CacheManifest } {
  const shards = Array.from({ length: n }, (_, s) => finishedShard(cache, s, n));
  const finished = shards.filter((shard) => shard !== undefined);
  if (finished.length < n) return { finished: finished.length };
  const { split, records, config, command } = cache.subject;
  const statistics = addStatistics(finished.map((shard) => shard.statistics));
  if (statistics.examples === 0)
    throw new InputError(
      `the preprocessors keep none of the ${records.numRecords} records of split '${split}', so there is nothing to cache. ` +
        `Remove ${cache.folder}, let them keep some, and run ${command} again.`,
    );
  const manifest: CacheManifest = {
    ...{ fingerprint: cache.fingerprint, split, records: records.numRecords, sourceDigest: records.digest },
    ...{ statistics, shards: finished, task: config },
  };
  writeWhole(cache.manifestPath, `${JSON.stringify(manifest, null, 2)}\n`);
  return { finished: n, manifest };
}

/** Counts examples and the token ids of their features. */
class ExampleCounter {
  #examples = 0;
  readonly #features = new Map<string, { tokens: number; longest: number }>();

  constructor(private readonly names: readonly string[]) {}

  add(example: Example): void {
    this.#examples += 1;
    for (const name of this.names) {
      const ids = example[name];
      // Before they are tokenized, features are text.
      if (!(ids instanceof Int32Array) && !Array.isArray(ids)) continue;
      const counted = this.#features.get(name) ?? { tokens: 0, longest: 0 };
      counted.tokens += ids.length;
      counted.longest = Math.max(counted.longest, ids.length);
      this.#features.set(name, counted);
    }
  }

  statistics(skipped: number): CacheStatistics {
    return { examples: this.#examples, skipped, features: Object.fromEntries(this.#features) };
  }
}
