/** @file Errors that a person caused and can mend: shown as one message, without a stack trace. */

/** Something on the command line is wrong (an unknown flag, mode, experiment, constant). The process exits with 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}
