/** @file Error of a request that a trained model can't serve. */

/** A prompt or batch that doesn't fit the model, or a request that its model can't serve; exit code 2. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** Name of the setting that it is about, where it is not about the prompt or batch. */
  readonly setting: string | undefined;

  constructor(message: string, { setting, ...options }: ErrorOptions & { readonly setting?: string } = {}) {
    super(message, options);
    this.setting = setting;
  }
}
