/** @file Errors of a job's surroundings. */

/** The job can't start or go on for a reason outside of the experiment; the message says where and what. */
export class JobError extends Error {
  override readonly name = 'JobError';
}

/** Another process works in the job's directory; the message says which. The process exits with 2. */
export class JobInUseError extends Error {
  override readonly name = 'JobInUseError';
}
