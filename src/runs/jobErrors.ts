/** @file Errors of a job: files and data around it, a directory in use, waiting for nothing. */
import { StrayFailures } from '../system/index.js';

/** The job can't start or continue for a reason outside of the experiment; the message names place and reason. */
export class JobError extends Error {
  override readonly name = 'JobError';
}

/** Another process uses the job's directory; the message names it. Exit code 2. */
export class JobInUseError extends Error {
  override readonly name = 'JobInUseError';
}

/** Failures that no call of a job reports. */
export const strayFailures = (): StrayFailures =>
  new StrayFailures(
    () =>
      new JobError(
        'The run awaits a promise that nothing is left to settle: no timer, file, thread or connection is open. ' +
          'Settle every promise that an input, an evaluation or a program of your own returns.',
      ),
  );
