/** @file HTTP server of a trained run: OpenAI's completions of language models and embeddings, predictions of others, on Hono. */
import { once } from 'node:events';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { TrainedRun } from '../trainedRun.js';
import { ActiveRequests } from './activeRequests.js';
import { chatPage } from './chatPage.js';
import { Completions, PredictedExamples } from './computations.js';
import { Connections, RECEIVE_MS } from './connections.js';
import { embeddingAnswer, readEmbeddingBody } from './embeddingBody.js';
import { checkHost } from './hosts.js';
import { HttpError, httpError } from './httpError.js';
import { readJson } from './jsonBody.js';
import { readPredictBody } from './predictBody.js';
import { ServedModels } from './servedModels.js';
import { ServerMetrics } from './serverMetrics.js';
import { type App, textRoutes } from './textRoutes.js';

/** Address and limits of a server. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Bytes of a body, at most. */
  readonly maxBody: number;
  /** Most tokens of a request; by default and at most, the model's context length. */
  readonly maxTokens?: number | undefined;
  /** Continuations or examples that are computed or wait at once; further requests are refused. */
  readonly maxWaiting: number;
  /** Seconds after which a request for text is given up; default: 600. */
  readonly maxSeconds?: number | undefined;
  /** Fine-tuned runs of the same model by name, for requests that name them. */
  readonly adapters?: Readonly<Record<string, TrainedRun>> | undefined;
  /** Time after which an answer of which nothing more is read is given up; default: 30 s. */
  readonly writeMs?: number | undefined;
  /** Is given errors that are no client's fault. */
  readonly log: (error: unknown) => void;
}

/** A server that listens. */
export interface Server {
  readonly url: string;
  /**
   * Takes no further requests, and waits for those under way; after `graceMs` it answers them with an error, and half a
   * second later all connections are closed.
   */
  close(graceMs: number): Promise<void>;
}

/** Fields that requests are about, by path; elsewhere it is the prompt. */
const SUBJECTS: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'messages',
  '/detokenize': 'tokens',
};

/** Seconds after which a client that was refused may try again. */
const RETRY_S = 1;
const WRITE_MS = 30_000;
/** As long as OpenAI's clients wait by default. */
const MOST_SECONDS = 600;
/** Time that answers of a server that stops have to reach their clients. */
const FLUSH_MS = 500;

/** Listens, and gives the server's address. @throws the system's error where it can't */
async function listen(server: HttpServer, { host, port }: ServerOptions): Promise<string> {
  server.listen({ host, port });
  await once(server, 'listening');
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
}

/**
 * Serves a run until it is closed. Continuations are decoded in the rows of one batch, first come, first served; see
 * `RowQueue`.
 *
 * @throws the system's error where the address can't be listened on.
 */
export async function serve(run: TrainedRun, options: ServerOptions): Promise<Server> {
  // Loading them takes a while, which no other command needs.
  const { Hono } = await import('hono');
  const { bodyLimit } = await import('hono/body-limit');
  const { getRequestListener } = await import('@hono/node-server');
  const { RESPONSE_ALREADY_SENT } = await import('@hono/node-server/utils/response');
  const { maxBody, maxTokens, maxWaiting, log } = options;
  const app: App = new Hono();
  const activeRequests = new ActiveRequests();
  const models = new ServedModels(run, options.adapters);
  const metrics = new ServerMetrics();
  const { maxSeconds = MOST_SECONDS } = options;
  const completions = new Completions({ activeRequests, maxWaiting, maxSeconds, metrics });
  const examples = new PredictedExamples({ activeRequests, maxWaiting });
  const started = Math.floor(Date.now() / 1000);
  const describe = (error: unknown, param?: string) => httpError(error, log, param);
  app.onError((error, context) => {
    // The body of a client that left is truncated; that is no failure of the server.
    const { complete, socket } = context.env.incoming;
    const { status, body } =
      socket.destroyed && !complete
        ? new HttpError(400, 'The client has left.')
        : describe(error, SUBJECTS[context.req.path]);
    if (status === 503 || status === 429) context.header('retry-after', String(RETRY_S));
    return context.json(body, status as ContentfulStatusCode);
  });
  app.use(async (context, next) => {
    const begun = performance.now();
    await next();
    const route = routes.find((each) => each === `${context.req.method} ${context.req.path}`);
    metrics.answered(route?.split(' ')[1] ?? 'other', context.res.status, begun);
  });
  app.use(async (context, next) => {
    if (!server.listening) {
      // A connection that stays open would keep a server that is to stop.
      context.header('connection', 'close');
      throw new HttpError(503, 'The server is shutting down, and takes no further requests.', {
        code: 'shutting_down',
      });
    }
    const named = context.req.header('host');
    if (named === undefined && context.env.incoming.httpVersion !== '1.0')
      throw new HttpError(400, 'The request names no host: expected a header Host.');
    checkHost(named ?? options.host, options.host);
    await next();
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
  app.get('/metrics', (context) => {
    const loads = run.continuesText ? [...models].map((each) => [each.id, each.run.load]) : [];
    context.header('content-type', 'text/plain; version=0.0.4; charset=utf-8');
    return context.body(metrics.text(Object.fromEntries(loads)));
  });
  app.get('/v1/models', (context) =>
    context.json({
      object: 'list',
      data: Array.from(models, ({ id }) => ({ id, object: 'model', created: started, owned_by: 'luthier' })),
    }),
  );
  if (run.continuesText)
    app.get('/', (context) => {
      const { html, headers } = chatPage();
      for (const [name, value] of Object.entries(headers)) context.header(name, value);
      return context.body(html);
    });
  app.post('/predict', async (context) => {
    const request = readPredictBody(await readJson(context.req), maxWaiting);
    const { run: own } = models.named(request.model);
    const predictions = await examples.predict(own, request, context.env.incoming.socket);
    return context.json({ model: run.name, predictions });
  });
  app.post('/v1/embeddings', async (context) => {
    const { model, texts, isBase64 } = readEmbeddingBody(await readJson(context.req), maxWaiting);
    if (!run.embeds)
      throw new HttpError(404, `${run.name} has no embeddings: its predictions are not called so.`);
    models.named(model);
    const { socket } = context.env.incoming;
    const predictions = await examples.predict(run, { instances: texts }, socket, 'input');
    const tokens = await run.countTokens(texts);
    return context.json(embeddingAnswer(run.name, predictions, { tokens, isBase64 }));
  });
  const ownPaths = run.continuesText
    ? textRoutes(app, { models, completions, maxWaiting, maxTokens, describe, sent: RESPONSE_ALREADY_SENT })
    : ['/predict', ...(run.embeds ? ['/v1/embeddings'] : [])];
  const routes = [
    ...['/health', '/metrics', '/v1/models', ...(run.continuesText ? ['/'] : [])].map(
      (path) => `GET ${path}`,
    ),
    ...ownPaths.map((path) => `POST ${path}`),
  ];
  app.all('*', ({ env: { incoming } }) => {
    const all = `${routes.slice(0, -1).join(', ')} and ${routes.at(-1)}`;
    const asked = `${incoming.method} ${incoming.url?.slice(0, 100)}`;
    throw new HttpError(404, `There is no ${asked}: there are ${all}.`);
  });
  const listener = getRequestListener(app.fetch, {
    hostname: 'localhost',
    errorHandler: (error) => Response.json(unreadable(error).body, { status: 400 }),
  });
  const server = createServer(
    {
      ...{
        headersTimeout: RECEIVE_MS.head,
        requestTimeout: RECEIVE_MS.whole,
        connectionsCheckingInterval: 1000,
      },
      // Checked here, where the error has the form of all.
      requireHostHeader: false,
    },
    listener,
  );
  const connections = new Connections(server, options.writeMs ?? WRITE_MS);
  const url = await listen(server, options);
  return {
    url,
    close: async (graceMs) => {
      const timers = [
        setTimeout(() => activeRequests.stop(), graceMs),
        setTimeout(() => connections.closeAll(), graceMs + FLUSH_MS),
      ];
      const closed = once(server, 'close');
      server.close();
      connections.drain();
      await closed;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** A request whose target or host makes no URL. */
const unreadable = (error: unknown): HttpError =>
  new HttpError(400, `The request's target or host: ${(error as Error).message}.`);
