/** @file A job's directory: locked against other writers, cleared of leftovers of killed processes. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { explain, makeDirectory, removeTemporaries, writeWhole } from '../files/index.js';
import { acquireLock, describeHolder, type Lock, LockedError } from '../system/index.js';
import { JobError, JobInUseError } from './jobErrors.js';
import type { JobMode } from './options.js';

/** A directory that this process may write to until it closes it. */
export interface JobDirectory {
  close(): void;
}

/** Jobs that write the same files exclude each other; evaluating and decoding checkpoints may run beside training. */
type Writer = 'train' | 'eval' | 'decode' | 'infer';

function writerOf(mode: JobMode | 'sweep'): Writer {
  if (mode === 'eval' || mode === 'infer') return mode;
  return mode.startsWith('decode') ? 'decode' : 'train';
}

/**
 * Creates the directory with its parents, locks it against processes that would write the same files, and removes
 * temporary files of killed processes. Evaluation, decoding and inference, which need a checkpoint, create no directory.
 *
 * @throws JobInUseError if another process holds the lock; JobError, with path and reason, if it can't be written.
 */
export async function openJobDirectory(directory: string, mode: JobMode | 'sweep'): Promise<JobDirectory> {
  const writer = writerOf(mode);
  if (writer !== 'train' && !existsSync(directory)) return { close: () => {} };
  const lock = await lockDirectory(directory, writer);
  removeTemporaries(directory);
  removeTemporaries(join(directory, 'profile'));
  for (const folder of ['decoder_out', 'eval_out'])
    for (const name of namesIn(join(directory, folder))) removeTemporaries(join(directory, folder, name));
  return { close: () => lock.release() };
}

const namesIn = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : []);

async function lockDirectory(directory: string, writer: Writer): Promise<Lock> {
  try {
    makeDirectory(directory);
    return await acquireLock(join(directory, `.${writer}.lock`));
  } catch (error) {
    if (error instanceof LockedError) {
      throw new JobInUseError(
        `--job_log_dir=${directory}: in use by ${describeHolder(error.holder)}. ` +
          'Wait until it has ended, or take another directory.',
      );
    }
    throw new JobError(`--job_log_dir=${directory}: can't be written: ${explain(error)}.`, { cause: error });
  }
}

/** Writes a job's file atomically, creating its directory. @throws JobError if it can't be written */
export function writeJobFile(path: string, contents: string | Uint8Array): void {
  try {
    makeDirectory(dirname(path));
    writeWhole(path, contents);
  } catch (cause) {
    throw new JobError(`${path} cannot be written: ${explain(cause)}.`, { cause });
  }
}
