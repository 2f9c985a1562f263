/** @file The checkpoint directory: names, listing, cleaning up after interrupted runs. */

import { accessSync, constants, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isThere, makeDirectory } from '../files/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { removeMarks } from './leases.js';

const NAME = /^(?:checkpoint_)?(\d+)$/;
/** A checkpoint that is being written or deleted. */
const UNFINISHED = /^tmp_[0-9a-z]+\.checkpoint_\d+$/;

/** `checkpoint_00000100` for step 100. */
export function checkpointName(step: number): string {
  return `checkpoint_${String(step).padStart(8, '0')}`;
}

/** The step of a checkpoint's name ('checkpoint_00000100', 'checkpoint_100' or '100'), else undefined. */
export function stepOfName(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** A name that listings skip, for a checkpoint that is being written or deleted. */
export function temporaryName(step: number): string {
  const unique = `${process.pid}x${process.hrtime.bigint().toString(36)}`;
  return `tmp_${unique}.${checkpointName(step)}`;
}

/** Finished checkpoints by step, in rising order; the value is the directory's name. */
export function listCheckpoints(directory: string): Map<number, string> {
  let names: string[];
  try {
    // A checkpoint may be a link to another disk. Whatever else has a checkpoint's name is listed as a broken one.
    names = readdirSync(directory, { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() || entry.isSymbolicLink() || entry.name.startsWith('checkpoint_'),
      )
      .map((entry) => entry.name);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw ioError(directory, 'cannot be listed', cause);
  }
  const found = new Map<number, string>();
  for (const name of names) {
    const step = stepOfName(name);
    if (step === undefined) continue;
    // If a step is there twice, the canonical spelling wins.
    if (!found.has(step) || name === checkpointName(step)) found.set(step, name);
  }
  return new Map([...found].sort(([a], [b]) => a - b));
}

/** Creates the directory, and removes files left by interrupted saves or deletions. */
export function prepareDirectory(directory: string): void {
  try {
    makeDirectory(directory);
    accessSync(directory, constants.W_OK);
    for (const name of readdirSync(directory))
      if (UNFINISHED.test(name)) rmSync(join(directory, name), { recursive: true, force: true });
    removeMarks(directory);
  } catch (cause) {
    throw ioError(directory, 'checkpoints cannot be written here', cause);
  }
}

/** The error for a directory without checkpoints, in Pax's words. */
export function noCheckpointsError(directory: string): CheckpointError {
  const message = existsSync(directory)
    ? `No checkpoints were found in directory checkpoint_dir=${directory}`
    : `Checkpoint directory checkpoint_dir=${directory} does not exist`;
  return new CheckpointError('missing', directory, message, { message });
}

/** A free name for a broken checkpoint, which is kept as evidence and never deleted. */
export function asideName(directory: string, name: string): string {
  for (let copy = 1; ; copy++) {
    const aside = `broken_${copy === 1 ? '' : `${copy}_`}${name}`;
    if (!isThere(join(directory, aside))) return aside;
  }
}
