/** @file HTTP server of a trained run: OpenAI's completions of language models, predictions of others, on Hono. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { Server as HttpServer, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import type { HonoRequest } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Completion } from '../completion.js';
import { RequestError } from '../requestError.js';
import type { TrainedRun } from '../trainedRun.js';
import { streamAnswer, wholeAnswer } from './completionAnswers.js';
import { type CompletionRequest, readBody } from './completionBody.js';
import { HttpError, httpError } from './httpError.js';
import { type PredictRequest, readPredictBody } from './predictBody.js';

/** Address and limits of a server. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Bytes of a body, at most. */
  readonly maxBody: number;
  /** Tokens that a request may ask for; at most, and by default, as many as the model has room for. */
  readonly maxTokens?: number | undefined;
  /** Continuations or examples that are computed or wait at once; further requests are refused. */
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
    checkModel(model, this.run);
    checkRoom('continuations are decoded', this.count, prompts.length, this.options);
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

/** Examples of requests under way. */
class PredictedExamples {
  #count = 0;

  constructor(
    private readonly run: TrainedRun,
    private readonly options: ServerOptions,
  ) {}

  get count(): number {
    return this.#count;
  }

  async predict({ model, instances }: PredictRequest): Promise<object> {
    checkModel(model, this.run);
    checkRoom('examples are predicted', this.count, instances.length, this.options);
    this.#count += instances.length;
    try {
      // A path would let clients read this machine's files.
      return { model: this.run.name, predictions: await this.run.predict(instances, { readsFiles: false }) };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      throw new HttpError(400, error.message.replace(/^predict: /, ''), { param: 'instances' });
    } finally {
      this.#count -= instances.length;
    }
  }
}

/** @throws HttpError 404 for another model than the one that is served */
function checkModel(model: string | undefined, { name }: TrainedRun): void {
  if (model === undefined || model === name) return;
  const message = `The model '${model}' is not served: '${name}' is.`;
  throw new HttpError(404, message, { param: 'model', code: 'model_not_found' });
}

/** @throws HttpError 503 where more are under way or wait than may */
function checkRoom(what: string, count: number, more: number, { maxWaiting }: ServerOptions): void {
  if (count + more <= maxWaiting) return;
  const message = `${count} ${what} or wait, of at most ${maxWaiting}. Try again later.`;
  throw new HttpError(503, message, { code: 'overloaded' });
}

/** A web page may have its own name lead to this machine: what it asks for then names that host. */
function checkHost(header: string, { host }: ServerOptions): void {
  const named = header.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  if (isLoopback(host) && !isLoopback(named))
    throw new HttpError(
      403,
      `The host '${named}' is not this server's: expected ${[...loopback].join(', ')}.`,
    );
}

/** The JSON of a request's body. Any web page may send text to this machine; JSON takes a server's consent. */
async function readJson(request: HonoRequest): Promise<unknown> {
  const type = request.header('content-type') ?? 'none';
  if (!/^application\/json *(;|$)/i.test(type))
    throw new HttpError(
      415,
      `The body's content type: expected application/json, got ${type.slice(0, 100)}.`,
    );
  try {
    return await request.json();
  } catch (error) {
    throw new HttpError(400, `The body: expected JSON: ${(error as Error).message}.`);
  }
}

/** Listens, and gives the server's address. @throws the system's error where it can't */
async function listen(server: HttpServer, { host, port }: ServerOptions): Promise<string> {
  server.listen({ host, port });
  await once(server, 'listening');
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
}

/**
 * Serves a run until it is closed. Continuations that wait together are decoded in one batch, first come, first served; see
 * `DecodeQueue`.
 *
 * @throws the system's error where the address can't be listened on.
 */
export async function serve(run: TrainedRun, options: ServerOptions): Promise<Server> {
  // Loading them takes a while, which no other command needs.
  const { Hono } = await import('hono');
  const { bodyLimit } = await import('hono/body-limit');
  const { createAdaptorServer } = await import('@hono/node-server');
  const { RESPONSE_ALREADY_SENT } = await import('@hono/node-server/utils/response');
  const { maxBody, maxTokens, maxWaiting, log } = options;
  const app = new Hono<{ Bindings: HttpBindings }>();
  const completions = new Completions(run, options);
  const examples = new PredictedExamples(run, options);
  const started = Math.floor(Date.now() / 1000);
  const describe = (error: unknown) => httpError(error, log);
  app.onError((error, context) => {
    const { status, body } = describe(error);
    if (status === 503) context.header('retry-after', String(RETRY_S));
    return context.json(body, status as ContentfulStatusCode);
  });
  app.use(async (context, next) => {
    checkHost(context.req.header('host') ?? '', options);
    await next();
    // A connection that stays open would keep a server that is to stop.
    if (!server.listening && !context.env.outgoing.headersSent) context.header('connection', 'close');
  });
  const onError = () => {
    throw new HttpError(413, `The body has more than ${maxBody} bytes.`);
  };
  app.use(bodyLimit({ maxSize: maxBody, onError }));
  app.get('/health', (context) =>
    context.json({
      ...{ status: 'ok', model: run.name, step: run.step },
      ...(run.continuesText ? { completions: completions.count } : { predictions: examples.count }),
    }),
  );
  app.get('/v1/models', (context) =>
    context.json({
      object: 'list',
      data: [{ id: run.name, object: 'model', created: started, owned_by: 'luthier' }],
    }),
  );
  app.post('/predict', async (context) =>
    context.json(await examples.predict(readPredictBody(await readJson(context.req), maxWaiting))),
  );
  app.post('/v1/completions', async (context) => {
    const limits = {
      prompts: Math.min(16, maxWaiting),
      maxTokens: Math.min(maxTokens ?? Number.POSITIVE_INFINITY, run.maxTokens),
    };
    const request = readBody(await readJson(context.req), limits);
    const { outgoing } = context.env;
    const begun = completions.begin(request, outgoing);
    if (!request.isStreamed) return context.json(await wholeAnswer(run.name, begun));
    await streamAnswer(outgoing, run.name, begun, { includesUsage: request.includesUsage, describe });
    return RESPONSE_ALREADY_SENT;
  });
  app.all('*', ({ env: { incoming } }) => {
    const own = run.continuesText ? '/v1/completions' : '/predict';
    const routes = `GET /health, GET /v1/models and POST ${own}`;
    const asked = `${incoming.method} ${incoming.url?.slice(0, 100)}`;
    throw new HttpError(404, `There is no ${asked}: there are ${routes}.`);
  });
  const serverOptions = { requestTimeout: REQUEST_MS };
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as HttpServer;
  const url = await listen(server, options);
  return {
    url,
    close: async (graceMs) => {
      const impatient = setTimeout(() => completions.cancel(), graceMs);
      const closed = once(server, 'close');
      server.close();
      await closed;
      clearTimeout(impatient);
    },
  };
}
