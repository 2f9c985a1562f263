/** @file Errors of inputs: InputError for invalid inputs, with its place; EndOfData at the end of their data. */

import { oneLine } from '../hparams/index.js';

/**
 * An input can't be created or continued; the message names input, problem and valid values, in one line: names and texts of
 * files stand in it that can hold anything.
 */
export class InputError extends Error {
  override readonly name = 'InputError';

  constructor(message: string, options?: ErrorOptions) {
    super(oneLine(message), options);
  }
}

/** A file is gone, has changed or can't be read: no example is to blame. */
export class FileError extends InputError {}

/** Whether an error is that of one example, so that others can be read. */
export function blamesExample(error: unknown): error is InputError {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof FileError) return false;
  return error instanceof InputError;
}

/** Thrown by `getNext` and `peek` after the last batch of an input that does not repeat. */
export class EndOfData extends Error {
  override readonly name = 'EndOfData';

  /** @param inputName name of the exhausted input */
  constructor(readonly inputName: string) {
    super(`Input '${inputName}' has no more data.`);
  }
}

/** The result of `make`. @throws InputError that begins with the place */
export function placed<T>(place: () => string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(`${place()}: ${error.message}`, { cause: error });
  }
}
