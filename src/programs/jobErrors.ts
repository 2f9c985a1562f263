/** @file Errors of a job: files and data around it, a directory in use. */

/** The job can't start or continue for a reason outside of the experiment; the message names place and reason. */
export class JobError extends Error {
  override readonly name = 'JobError';
}

/** Another process uses the job's directory; the message names it. Exit code 2. */
export class JobInUseError extends Error {
  override readonly name = 'JobInUseError';
}
