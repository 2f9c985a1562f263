/** @file HTTP server of a trained run: OpenAI's completions, on fastify. */
import { randomInt } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Completion } from '../completion.js';
import type { TrainedRun } from '../trainedRun.js';
import { streamAnswer, wholeAnswer } from './completionAnswers.js';
import { type CompletionRequest, readBody } from './completionBody.js';
import { HttpError, httpError } from './httpError.js';

/** Address and limits of a server. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Bytes of a body, at most. */
  readonly maxBody: number;
  /** Tokens that a request may ask for; at most the model's. */
  readonly maxTokens: number;
  /** Continuations that are decoded or wait at once; further requests are refused. */
  readonly maxWaiting: number;
  /** Is given errors that are no client's fault. */
  readonly log: (error: unknown) => void;
}

/** A server that listens. */
export interface Server {
  readonly url: string;
  /** Takes no further requests, and waits for those under way; after `graceMs` it cancels them. */
  close(graceMs: number): Promise<void>;
}

/** Time that a client may take to send its request. */
const REQUEST_MS = 30_000;
/** Seconds after which a client that was refused may try again. */
const RETRY_S = 1;

const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);

/** Whether only programs of this machine reach the host. */
export const isLoopback = (host: string): boolean => loopback.has(host);

/** Continuations of requests under way, and what is told of them. */
class Completions {
  readonly #current = new Set<Completion>();

  constructor(
    private readonly run: TrainedRun,
    private readonly options: ServerOptions,
  ) {}

  get count(): number {
    return this.#current.size;
  }

  /** Makes the continuations that a request asks for; they end as soon as its client is gone. */
  begin({ model, prompts, options }: CompletionRequest, response: ServerResponse): Completion[] {
    const { name } = this.run;
    if (model !== undefined && model !== name) {
      const message = `The model '${model}' is not served: '${name}' is.`;
      throw new HttpError(404, message, { param: 'model', code: 'model_not_found' });
    }
    if (this.count + prompts.length > this.options.maxWaiting) {
      const message = `${this.count} continuations are decoded or wait, of at most ${this.options.maxWaiting}. Try again later.`;
      throw new HttpError(503, message, { code: 'overloaded' });
    }
    const seeded = { seed: randomInt(2 ** 31), ...options };
    const begun = prompts.map((prompt) => this.run.stream(prompt, seeded));
    for (const completion of begun) this.#current.add(completion);
    response.once('close', () => {
      for (const completion of begun) {
        completion.cancel();
        this.#current.delete(completion);
      }
    });
    return begun;
  }

  cancel(): void {
    for (const completion of this.#current) completion.cancel();
  }
}

/** A web page may have its own name lead to this machine: what it asks for then names that host. */
function checkHost({ headers }: IncomingMessage, { host }: ServerOptions): void {
  const named = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  if (isLoopback(host) && !isLoopback(named))
    throw new HttpError(
      403,
      `The host '${named}' is not this server's: expected ${[...loopback].join(', ')}.`,
    );
}

/**
 * Serves a run until it is closed. Continuations that wait together are decoded in one batch, first come, first served; see
 * `DecodeQueue`.
 *
 * @throws the system's error where the address can't be listened on.
 */
export async function serve(run: TrainedRun, options: ServerOptions): Promise<Server> {
  // Loading it takes a while, which no other command needs.
  const { fastify } = await import('fastify');
  const { host, port, maxBody, maxTokens, maxWaiting, log } = options;
  const app = fastify({ bodyLimit: maxBody, requestTimeout: REQUEST_MS, forceCloseConnections: 'idle' });
  // Any web page may send text to this machine; JSON takes a server's consent.
  app.removeContentTypeParser('text/plain');
  const completions = new Completions(run, options);
  const started = Math.floor(Date.now() / 1000);
  const describe = (error: unknown) => httpError(error, log);
  app.setErrorHandler((error, _, reply) => {
    const described = describe(error);
    if (described.status === 503) reply.header('retry-after', String(RETRY_S));
    return reply.status(described.status).send(described.body);
  });
  app.setNotFoundHandler(({ method, url }) => {
    const routes = 'GET /health, GET /v1/models and POST /v1/completions';
    throw new HttpError(404, `There is no ${method} ${url.slice(0, 100)}: there are ${routes}.`);
  });
  app.addHook('onRequest', async ({ raw }) => checkHost(raw, options));
  app.get('/health', async () => ({
    ...{ status: 'ok', model: run.name, step: run.step, completions: completions.count },
  }));
  app.get('/v1/models', async () => ({
    object: 'list',
    data: [{ id: run.name, object: 'model', created: started, owned_by: 'luthier' }],
  }));
  app.post('/v1/completions', async ({ body }, reply) => {
    const limits = { prompts: Math.min(16, maxWaiting), maxTokens: Math.min(maxTokens, run.maxTokens) };
    const request = readBody(body, limits);
    const begun = completions.begin(request, reply.raw);
    if (!request.isStreamed) return wholeAnswer(run.name, begun);
    reply.hijack();
    await streamAnswer(reply.raw, run.name, begun, describe);
    return reply;
  });
  const url = await app.listen({ host, port });
  return {
    url,
    close: async (graceMs) => {
      const impatient = setTimeout(() => completions.cancel(), graceMs);
      await app.close();
      clearTimeout(impatient);
    },
  };
}
