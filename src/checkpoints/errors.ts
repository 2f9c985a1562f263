/** @file The one error of checkpoints: what is wrong with which file, and what kind of trouble it is. */

import { explain } from '../files/index.js';

/**
 * - `missing`: no such checkpoint or directory
 * - `broken`: a file is truncated, damaged or not what its name says
 * - `mismatch`: whole, but from another experiment or with other variables
 * - `io`: the system refused to read or write
 */
export type CheckpointErrorKind = 'missing' | 'broken' | 'mismatch' | 'io';

/** Thrown by everything in this room; the program ends with exit code 1. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';

  /**
   * @param path the file or directory at fault
   * @param problem what is wrong with it, with expected and found values
   * @param options `message` replaces the usual "path: problem"
   */
  constructor(
    readonly kind: CheckpointErrorKind,
    readonly path: string,
    readonly problem: string,
    options: ErrorOptions & { message?: string } = {},
  ) {
    super(options.message ?? `${path}: ${problem}`, options);
  }
}

/** A system error (ENOSPC, EACCES …) as a CheckpointError of kind `io` that keeps the cause. */
export function ioError(path: string, doing: string, cause: unknown): CheckpointError {
  if (cause instanceof CheckpointError) return cause;
  return new CheckpointError('io', path, `${doing}: ${explain(cause)}`, { cause });
}
