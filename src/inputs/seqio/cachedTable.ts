/** @file Reading of a task's cache: its shards as one table, checked against the task. */
import { isDeepStrictEqual } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { explain } from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import { joinTables } from '../records/joinedTables.js';
import { openRecordFile, type RecordFile } from '../records/recordFile.js';
import type { RecordTable } from '../records/recordTable.js';
import { SkippedExamples } from '../skippedExamples.js';
import { cachedExamples } from './cachedExamples.js';
import { areOneToOne } from './preprocessor.js';
import { type CacheManifest, type ShardEntry, shardCountOf, type TaskCache } from './taskCache.js';

/** Most shards whose first example is made again, to see that code has not changed. */
const CHECKED_SHARDS = 8;

/**
 * The examples of a cache, numbered over all shards. Where each record gave one, example i is that of record i, and the
 * digest is that of the records: who has read these continues with the cache.
 *
 * @throws InputError where there is no cache, a shard of it is missing or damaged, or its preprocessors, whose code a
 *   fingerprint can't know, give other examples by now.
 */
export function openCachedTable(cache: TaskCache): RecordTable {
  const { task, split, records, command } = cache.subject;
  const manifest = cache.manifest();
  if (manifest === undefined)
    throw new InputError(
      `there is no cache of split '${split}' of this task in ${cache.folder}; the name tells source, tokenizers and ` +
        `preprocessors. Make it: ${command}`,
    );
  const opened: RecordTable[] = [];
  try {
    for (const shard of manifest.shards) opened.push(openShard(cache, shard));
    checkCode(cache, manifest, opened);
  } catch (error) {
    for (const table of opened) table.close();
    throw error;
  }
  const { skipped } = manifest.statistics;
  const digest =
    areOneToOne(task.stages.slice(0, task.numCachedStages)) && skipped === 0
      ? records.digest
      : `${cache.fingerprint}-${manifest.shards.length}`;
  const close = (): void => {
    for (const table of [...opened, records]) table.close();
  };
  return { ...joinTables(opened, close), digest };
}

function openShard(cache: TaskCache, { file, statistics }: ShardEntry): RecordTable {
  const { records, command } = cache.subject;
  const path = cache.pathOf(file);
  const mended = <T>(make: () => T): T => {
    try {
      return make();
    } catch (error) {
      throw new InputError(`${explain(error)} It is part of a cache: ${command} writes it again.`, {
        cause: error,
      });
    }
  };
  const shard = mended((): RecordFile => {
    const opened = openRecordFile(path);
    const { fingerprint } = opened.about as { readonly fingerprint?: string };
    if (fingerprint === cache.fingerprint && opened.numRecords === statistics.examples) return opened;
    opened.close();
    throw new InputError(`${path} is not a shard of the manifest.`);
  });
  const { numRecords, digest, size } = shard;
  return {
    ...{ numRecords, digest, files: [{ name: file, path, size }] },
    read: (i) => mended(() => shard.read(i)),
    place: (i) => `${records.place(shard.position(i))} (${file}, example ${i})`,
    close: () => shard.close(),
  };
}

/** Makes the first example of some shards again. @throws InputError where it is another one */
function checkCode(cache: TaskCache, { shards }: CacheManifest, tables: readonly RecordTable[]): void {
  const { task, records, onError, command } = cache.subject;
  const step = Math.ceil(shards.length / CHECKED_SHARDS);
  for (let s = 0; s < shards.length; s += step) {
    if (tables[s]!.numRecords === 0) continue;
    const range = cache.rangeOf(s, shardCountOf(shards[s]!.file)!);
    const { value: made } = cachedExamples(task, records, range, onError, new SkippedExamples()).next();
    const example: unknown = deserialize(serialize(made?.example));
    if (isDeepStrictEqual(example, tables[s]!.read(0))) continue;
    throw new InputError(
      `${cache.pathOf(shards[s]!.file)}, example 0: the preprocessors make another example of ${records.place(range.from)} than ` +
        `was cached, so their code has changed. Remove ${cache.folder}, and run ${command} again.`,
    );
  }
}
