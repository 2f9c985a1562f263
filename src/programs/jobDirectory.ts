/** @file The directory of a job: one process writes there at a time, and nothing lies about that one was writing when it was killed. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { explain, makeDirectory, removeTemporaries, writeWhole } from '../files/index.js';
import { acquireLock, describeHolder, type Lock, LockedError } from '../system/index.js';
import { JobError, JobInUseError } from './errors.js';
import type { JobMode } from './options.js';

/** A directory that this process may write to until it closes it. */
export interface JobDirectory {
  close(): void;
}

/** What writes the same files: training and sweeps; evaluation and decoding of checkpoints may run beside them. */
type Writer = 'train' | 'eval' | 'decode';

function writerOf(mode: JobMode | 'sweep'): Writer {
  if (mode === 'eval') return 'eval';
  return mode.startsWith('decode') ? 'decode' : 'train';
}

/**
 * Makes the directory and everything above it, locks it against other processes that would write the same files, and removes
 * what those before were writing when they were killed. Evaluation and decoding, which need what is there, make none.
 *
 * @throws JobInUseError where another process has it; JobError that says which path can't be written and why.
 */
export async function openJobDirectory(directory: string, mode: JobMode | 'sweep'): Promise<JobDirectory> {
  const writer = writerOf(mode);
  if (writer !== 'train' && !existsSync(directory)) return { close: () => {} };
  const lock = await lockDirectory(directory, writer);
  removeTemporaries(directory);
  removeTemporaries(join(directory, 'profile'));
  const decoded = join(directory, 'decoder_out');
  if (existsSync(decoded)) for (const name of readdirSync(decoded)) removeTemporaries(join(decoded, name));
  return { close: () => lock.release() };
}

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

/** Writes a file of a job whole, or not at all, in a directory that is made where there is none. @throws JobError */
export function writeJobFile(path: string, text: string): void {
  try {
    makeDirectory(dirname(path));
    writeWhole(path, text);
  } catch (cause) {
    throw new JobError(`${path} cannot be written: ${explain(cause)}.`, { cause });
  }
}
