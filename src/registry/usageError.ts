/** @file Errors of the command line, shown as one message without a stack trace. */
import { bounded } from '../hparams/errors.js';

/** Something on the command line is wrong (an unknown flag, mode, experiment, constant). The process exits with 2. */
export class UsageError extends Error {
  override name = 'UsageError';

  constructor(message: string, options?: ErrorOptions) {
    super(bounded(message), options);
  }
}
