/** @file Error of a request that a trained model can't serve. */

/** A prompt or batch that doesn't fit the model, or a request that its model can't serve; exit code 2. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}
