/**
 * @file Parts of a state's file that several processes write into one unfinished checkpoint. Each leaves a record of its part once
 * it is on the disk; the first process makes the checkpoint visible when it has read all of them.
 */
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isThere } from '../files/index.js';
import { type FileDigest, PIECE_BYTES, writeFileDurably } from './durableFile.js';
import { STATE_FILE } from './metadata.js';
import { digestOfChunks, digestsOf } from './stateChunks.js';

/** The part of one process, in a form that crosses to a worker thread without copying the weights. */
export interface FilePart {
  /** The unfinished checkpoint. */
  readonly directory: string;
  readonly step: number;
  /** Number of the process, of `count`. */
  readonly index: number;
  readonly count: number;
  /** Of the whole file. */
  readonly fileLength: number;
  /** Bytes of a chunk. */
  readonly chunk: number;
  /** Where the part begins in the file. */
  readonly begin: number;
  readonly data: SharedArrayBuffer;
}

/** What a process says of its part. */
interface PartRecord {
  readonly step: number;
  readonly chunks?: readonly string[];
  /** The reason why it could not be written. */
  readonly failure?: string;
}

/** Milliseconds between looks for records: the first, and the longest. */
const [SOON, LATE] = [5, 250];
/** Seconds without another record after which those that are missing are given up. */
const PATIENCE_SECONDS = 600;

const recordName = (index: number): string => `part_${index}.json`;

/** Creates the state file of an unfinished checkpoint, as long as it will be. */
export function createStateFile({ directory, fileLength }: Pick<FilePart, 'directory' | 'fileLength'>): void {
  const file = openSync(join(directory, STATE_FILE), 'wx');
  try {
    ftruncateSync(file, fileLength);
  } finally {
    closeSync(file);
  }
}

/** Writes a part, which is on the disk then. @returns the digests of its chunks */
function writeRange({ directory, chunk, begin, data }: FilePart): string[] {
  const file = openSync(join(directory, STATE_FILE), 'r+');
  const bytes = new Uint8Array(data);
  try {
    for (let at = 0; at < bytes.length; )
      at += writeSync(file, bytes, at, Math.min(PIECE_BYTES, bytes.length - at), begin + at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return digestsOf(bytes, chunk);
}

/**
 * Writes the part of a process other than the first, and its record: the first one learns from it of a failure, too.
 *
 * @throws where not even the record can be written, unless the first process has given the checkpoint up
 */
export function writePart(part: FilePart): void {
  const { directory, step, index } = part;
  let record: PartRecord;
  try {
    record = { step, chunks: writeRange(part) };
  } catch (error) {
    record = { step, failure: (error as Error).message };
  }
  const path = join(directory, recordName(index));
  try {
    writeFileDurably(`${path}.tmp`, [Buffer.from(JSON.stringify(record))]);
    renameSync(`${path}.tmp`, path);
  } catch (error) {
    if (isThere(directory)) throw error;
  }
}

/**
 * Writes the first process's part, and waits for those of the others.
 *
 * @returns the digest of the whole file, which is on the disk then
 * @throws Error where a part is missing, of another step, or could not be written, with its process
 */
export async function writeParts(part: FilePart, patience = PATIENCE_SECONDS): Promise<FileDigest> {
  const { count, chunk, fileLength } = part;
  const own = writeRange(part);
  const records = await recordsOf(part, patience);
  const chunks = [own, ...records].flat();
  for (let index = 1; index < count; index++) rmSync(join(part.directory, recordName(index)));
  return digestOfChunks(fileLength, { byteLength: chunk, sha256: chunks });
}

/** Digests of the other processes' parts. */
async function recordsOf({ directory, step, count }: FilePart, patience: number): Promise<string[][]> {
  const found = new Map<number, string[]>();
  let [since, pause] = [performance.now(), SOON];
  while (found.size < count - 1) {
    // A listing, since a file system of several machines may remember for a while that a file was not there.
    const names = new Set(readdirSync(directory));
    for (let index = 1; index < count; index++) {
      if (found.has(index) || !names.has(recordName(index))) continue;
      found.set(index, chunksOf(join(directory, recordName(index)), step, index));
      [since, pause] = [performance.now(), SOON];
    }
    if (found.size === count - 1) break;
    if (performance.now() - since > 1000 * patience) {
      const missing = Array.from({ length: count - 1 }, (_, i) => i + 1).filter((index) => !found.has(index));
      const ranks = missing.length === 1 ? `rank ${missing}` : `ranks ${missing.join(', ')}`;
      throw new Error(`the part of ${ranks} is missing after ${patience} seconds`);
    }
    await sleep(pause);
    pause = Math.min(LATE, 2 * pause);
  }
  return Array.from({ length: count - 1 }, (_, i) => found.get(i + 1)!);
}

function chunksOf(path: string, step: number, index: number): string[] {
  const record = JSON.parse(readFileSync(path, 'utf8')) as PartRecord;
  if (record.step !== step)
    throw new Error(`the part of rank ${index} is of step ${record.step}, not of step ${step}`);
  if (record.failure !== undefined) throw new Error(`the part of rank ${index}: ${record.failure}`);
  return [...record.chunks!];
}
