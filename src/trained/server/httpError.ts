/** @file Errors as clients of the server see them, in OpenAI's form. */

/** An error with the status of its response. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  /** Name of the field that it is about. */
  readonly param: string | null;
  /** OpenAI's code of the error. */
  readonly code: string | null;

  constructor(
    readonly status: number,
    message: string,
    { param = null, code = null }: { readonly param?: string | null; readonly code?: string | null } = {},
  ) {
    super(message);
    this.param = param;
    this.code = code;
  }

  /** Body of the response. */
  get body(): object {
    const ofClient = this.status === 429 ? 'rate_limit_error' : 'invalid_request_error';
    const type = this.status < 500 ? ofClient : 'server_error';
    return { error: { message: this.message, type, param: this.param, code: this.code } };
  }
}

/** Errors of a prompt or its settings, by name. */
const ofRequest: ReadonlySet<string> = new Set(['RequestError', 'InputError']);

/**
 * An error for clients: the problem of a request, or a general message for errors of the server.
 *
 * @param log receives errors of the server.
 * @param param the field that a request is about.
 */
export function httpError(error: unknown, log: (error: unknown) => void, param = 'prompt'): HttpError {
  if (error instanceof HttpError) return error;
  const { name, message } = error as Error;
  if (ofRequest.has(name)) return new HttpError(400, message, { param });
  log(error);
  return new HttpError(500, 'The server failed to answer this request; its log has the reason.');
}
