/** @file Command-line errors, printed without a stack trace. */
import { bounded } from './messages.js';

/** An error on the command line (an unknown flag, mode, experiment, constant). Exit code 2. */
export class UsageError extends Error {
  override name = 'UsageError';

  constructor(message: string, options?: ErrorOptions) {
    super(bounded(message), options);
  }
}
