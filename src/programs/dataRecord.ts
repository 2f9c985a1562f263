/** @file Records of a run's data: written when an input is first read, compared by later processes. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { explain, isThere, readJsonFile } from '../files/index.js';
import { changedParts, type DataIdentity, type PartStates } from '../inputs/index.js';
import { JobError, writeJobFile } from '../runs/index.js';

const part = z.strictObject({
  class: z.string(),
  identity: z.string(),
  learned: z.record(z.string(), z.json()),
});

const schema = z.strictObject({
  vocabSize: z.int().positive().optional(),
  tokenizer: part.optional(),
  parts: z.record(z.string(), part).optional(),
  files: z
    .array(
      z.strictObject({ name: z.string(), path: z.string(), size: z.int(), sha256: z.string().optional() }),
    )
    .optional(),
  folders: z
    .array(
      z.strictObject({
        name: z.string(),
        path: z.string(),
        numFiles: z.int(),
        size: z.int().optional(),
        sha256: z.string().optional(),
      }),
    )
    .optional(),
  contents: z.string().optional(),
});

/** Path of the record of a program's input: `data/train.json`, `data/eval_test_<dataset>.json` … */
export function dataRecordPath(jobLogDir: string, program: string): string {
  return join(jobLogDir, 'data', `${program}.json`);
}

/** The records of a run's data, by programs. */
export interface DataRecords {
  /** Whether inputs may be read ahead: by a job, which takes their batches. */
  readonly readsAhead: boolean;
  /** Where a program's record is, for messages. */
  pathOf(program: string): string;
  /** @throws JobError if it can't be read */
  read(program: string): DataIdentity | undefined;
  /** @throws JobError if it can't be written */
  write(program: string, identity: DataIdentity): void;
}

/** The records in a run's directory. */
export const recordsIn = (jobLogDir: string): DataRecords => ({
  readsAhead: true,
  pathOf: (program) => dataRecordPath(jobLogDir, program),
  read: (program) => recordedData(jobLogDir, program),
  write: (program, identity) => recordData(jobLogDir, program, identity),
});

/** A record of training's data in memory, and no others. @param path of it, for messages */
export function keptRecord(data: DataIdentity | undefined, path: string): DataRecords {
  const known = new Map(data === undefined ? [] : [['train', data]]);
  return {
    readsAhead: false,
    pathOf: () => path,
    read: (program) => known.get(program),
    write: (program, identity) => void known.set(program, identity),
  };
}

/** Reads the record of a program's input, if any. @throws JobError if it can't be read */
export function recordedData(jobLogDir: string, program: string): DataIdentity | undefined {
  const path = dataRecordPath(jobLogDir, program);
  if (!isThere(path)) return undefined;
  try {
    return readJsonFile(path, schema) as DataIdentity;
  } catch (cause) {
    throw new JobError(
      `${path}: not the record of an input (${explain(cause)}). Restore it, or delete it to record the data as it is now.`,
      { cause },
    );
  }
}

/**
 * Checks the state of parts that were built with what training recorded: a vocabulary, say, against the digest that stands
 * beside it.
 *
 * @param parts states of the built parts by path
 * @throws JobError for one that differs from the record
 */
export function checkRecorded(jobLogDir: string, recorded: DataIdentity, parts: PartStates): void {
  // Of others nothing was set.
  const learned = Object.entries(parts).filter(([, state]) => Object.keys(state.learned).length > 0);
  const [changed] = changedParts(recorded, { parts: Object.fromEntries(learned) });
  if (changed === undefined) return;
  throw new JobError(
    `${dataRecordPath(jobLogDir, 'train')}: damaged: it has the identity ${changed.before}, and beside it the state of ` +
      `${changed.now}. Ids would mean something else: restore the file.`,
  );
}

/** Deletes the records of earlier runs. */
export function forgetData(jobLogDir: string): void {
  rmSync(join(jobLogDir, 'data'), { recursive: true, force: true });
}

/** Writes the record of a program's input. @throws JobError where it can't be written */
export function recordData(jobLogDir: string, program: string, identity: DataIdentity): void {
  writeJobFile(dataRecordPath(jobLogDir, program), `${JSON.stringify(identity, null, 1)}\n`);
}
