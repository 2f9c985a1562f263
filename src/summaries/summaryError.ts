/** @file SummaryError: a summary file that can't be written. */

import { explain } from '../files/index.js';

/** Thrown when the system refuses a summary file; the program ends with exit code 1. */
export class SummaryError extends Error {
  override readonly name = 'SummaryError';

  /** @param path the file or directory that could not be written */
  constructor(
    readonly path: string,
    cause: unknown,
  ) {
    super(`${path}: summaries cannot be written here: ${explain(cause)}`, { cause });
  }
}

/** Runs a file operation. @throws SummaryError with the path for its error. */
export function onPath<T>(path: string, operation: () => T): T {
  try {
    return operation();
  } catch (cause) {
    throw new SummaryError(path, cause);
  }
}
