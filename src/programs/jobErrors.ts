/** @file Errors of a job: files and data around it, a directory in use. */

/** The job can't start or go on for a reason outside of the experiment; the message names place and reason. */
export class JobError extends Error {
  override readonly name = 'JobError';
}

/** Another process works in the job's directory; the message names it. The command exits with 2. */
export class JobInUseError extends Error {
  override readonly name = 'JobInUseError';
}
