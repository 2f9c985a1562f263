/** @file CheckpointError: path, problem and kind. */

import { explain } from '../files/index.js';

/** The flag that allows an older checkpoint where the newest is broken; named in errors. */
const RESTORE_PREVIOUS_FLAG = '--restore_previous_checkpoint';

/**
 * - `missing`: no such checkpoint or directory
 * - `broken`: a file is truncated, damaged or not of its name's format
 * - `mismatch`: intact, but from another experiment or with other variables
 * - `io`: the system refused to read or write
 */
export type CheckpointErrorKind = 'missing' | 'broken' | 'mismatch' | 'io';

/** Thrown by everything in this room; the program ends with exit code 1. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';

  /**
   * @param path the file or directory at fault
   * @param problem its defect, with expected and found values
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

/** A checkpoint that can't be read may be whole: no older one takes its place unless the user moves it away. */
export function unreadableError(
  path: string,
  error: CheckpointError,
  previous: number | undefined,
): CheckpointError {
  const older = previous === undefined ? '' : `, or move it away to go on from step ${previous}`;
  const message = `${error.message}\nThe checkpoint ${path} may be intact: make it readable${older}.`;
  return new CheckpointError('io', error.path, error.problem, { message, cause: error });
}

/** The error of a broken checkpoint that was left in place, with the one to use instead. */
export function brokenError(
  passedOver: readonly CheckpointError[],
  previous: number | undefined,
): CheckpointError {
  const [newest, ...older] = passedOver;
  const lines = [`checkpoint ${newest!.path} is broken and was left in place:`, `  ${newest!.problem}`];
  for (const { problem } of older) lines.push(`  ${problem}`);
  if (previous !== undefined) {
    lines.push(
      `The checkpoint before it is for step ${previous}; ${RESTORE_PREVIOUS_FLAG} resumes from there.`,
    );
  } else {
    lines.push('There is no older checkpoint to go back to.');
  }
  return new CheckpointError('broken', newest!.path, newest!.problem, {
    message: lines.join('\n'),
    cause: newest,
  });
}
