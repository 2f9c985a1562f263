/** @file What a job throws where its surroundings are not as it needs them. */

/** The job can't start or go on for a reason outside of the experiment; the message says where and what. */
export class JobError extends Error {
  override readonly name = 'JobError';
}
