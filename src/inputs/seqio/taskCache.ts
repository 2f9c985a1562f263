/** @file Cache of a task's split: its fingerprint, its folder, its shards and their manifest. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { explain, readRegularFile } from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import type { JsonValue } from '../jsonValue.js';
import type { RecordTable } from '../records/recordTable.js';
import type { OnError } from '../skippedExamples.js';
import type { RecordRange } from './cachedExamples.js';
import type { Task } from './seqioTask.js';
import { digestOf } from './taskExamples.js';

/** Goes up where equal configs give other examples, or where files have another form. */
const FORMAT = 1;
const MANIFEST = 'manifest.json';

const count = z.int().nonnegative();

const statistics = z.object({
  examples: count,
  /** Records that were left out, as they are broken. */
  skipped: count,
  /** Token ids of all examples together, and of the longest one, by feature. */
  features: z.record(z.string(), z.object({ tokens: count, longest: count })),
});

const shard = z.object({
  // A name alone: it never leads out of the cache.
  file: z.string().regex(/^\d{5}-of-\d{5}\.records$/),
  bytes: count,
  statistics,
});

const manifest = z.object({
  fingerprint: z.string(),
  split: z.string(),
  records: count,
  sourceDigest: z.string(),
  statistics,
  shards: z.array(shard).min(1),
  /** The task's config, up to the placeholder. */
  task: z.custom<JsonValue>((value) => value !== undefined),
});

/** Numbers of a task's cached examples, as SeqIO's `cached_dataset_stats`. */
export type CacheStatistics = Readonly<z.output<typeof statistics>>;

/** A shard in the manifest. */
export type ShardEntry = Readonly<z.output<typeof shard>>;

/** Content of `manifest.json`, of a cache whose shards are all there. */
export type CacheManifest = Readonly<z.output<typeof manifest>>;

/** Subject of a cache. */
export interface CacheSubject {
  readonly task: Task;
  readonly split: string;
  /** The split's records. */
  readonly records: RecordTable;
  /** The task's config with only the cached preprocessors, and with the learned state of its tokenizers. */
  readonly config: JsonValue;
  readonly onError: OnError;
  /** Command that makes the cache. */
  readonly command: string;
}

/** A cache, which may not exist yet. Its folder is named by its fingerprint: another config has another cache. */
export class TaskCache {
  readonly fingerprint: string;
  readonly folder: string;

  constructor(
    readonly subject: CacheSubject,
    directory: string,
  ) {
    const { split, records, config, onError, task } = subject;
    const tokenizers = Object.entries(task.hp.features).map(([name, { hp }]) => [
      name,
      hp.tokenizer.identity(),
    ]);
    this.fingerprint = digestOf([FORMAT, split, records.digest, config, tokenizers, onError]);
    this.folder = resolve(directory, this.fingerprint);
  }

  /** The records of shard s of n. */
  rangeOf(s: number, n: number): RecordRange {
    const { numRecords } = this.subject.records;
    return { from: Math.floor((s * numRecords) / n), to: Math.floor(((s + 1) * numRecords) / n) };
  }

  pathOf(file: string): string {
    return join(this.folder, file);
  }

  get manifestPath(): string {
    return this.pathOf(MANIFEST);
  }

  /** The manifest; undefined where not all shards are there. @throws InputError for one that is damaged */
  manifest(): CacheManifest | undefined {
    if (!existsSync(this.manifestPath)) return undefined;
    try {
      const read = manifest.parse(JSON.parse(readRegularFile(this.manifestPath).toString()));
      if (read.fingerprint !== this.fingerprint)
        throw new InputError(`it is of the cache ${read.fingerprint}, in the folder of another`);
      const n = read.shards.length;
      const wrong = read.shards.findIndex(({ file }, s) => file !== shardFile(s, n));
      if (wrong >= 0)
        throw new InputError(
          `shard ${wrong} of ${n} is ${read.shards[wrong]!.file}; expected ${shardFile(wrong, n)}`,
        );
      return read;
    } catch (error) {
      throw new InputError(
        `${this.manifestPath} is damaged: ${reasonOf(error)}. Remove it; ${this.subject.command} writes it anew.`,
        { cause: error },
      );
    }
  }
}

/** In one line. */
function reasonOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return explain(error);
  const { path, message } = error.issues[0]!;
  return `${path.length === 0 ? '' : `${path.join('.')}: `}${message}`;
}

/** The file of shard s of n. */
export const shardFile = (s: number, n: number): string =>
  `${String(s).padStart(5, '0')}-of-${String(n).padStart(5, '0')}.records`;

/** The number of shards that a shard's file belongs to; undefined for another file. */
export function shardCountOf(file: string): number | undefined {
  const digits = /^\d{5}-of-(\d{5})\.records$/.exec(file)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Those of several shards together. */
export function addStatistics(all: readonly CacheStatistics[]): CacheStatistics {
  const features: Record<string, { tokens: number; longest: number }> = {};
  for (const { features: added } of all)
    for (const [name, { tokens, longest }] of Object.entries(added)) {
      const before = features[name] ?? { tokens: 0, longest: 0 };
      features[name] = { tokens: before.tokens + tokens, longest: Math.max(before.longest, longest) };
    }
  const sum = (of: (each: CacheStatistics) => number): number =>
    all.reduce((total, each) => total + of(each), 0);
  return { examples: sum(({ examples }) => examples), skipped: sum(({ skipped }) => skipped), features };
}
