/** @file Clients that misbehave, against a server in this process: slots, shutdown, and the form of all errors. */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { TrainedRun } from '../../../src/trained/index.js';
import { type Server, serve } from '../../../src/trained/server/server.js';
import { endlessRun } from './endlessRun.js';
import { answered, closed, opened, posted } from './rawClient.js';

interface Settings {
  readonly run?: TrainedRun;
  readonly piece?: string;
  readonly writeMs?: number;
}

const errors: unknown[] = [];
const servers: Server[] = [];

async function started(
  pauseMs: number,
  { piece = 'a', run = endlessRun(pauseMs, piece), ...more }: Settings = {},
): Promise<Server> {
  const options = { host: '127.0.0.1', port: 0, maxBody: 1 << 20, maxWaiting: 64, ...more };
  const server = await serve(run, { ...options, log: (error) => errors.push(error) });
  servers.push(server);
  return server;
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close(0);
  expect(errors.splice(0)).toEqual([]);
});

const path = '/v1/completions';
const many = (count: number, fields: object = {}) => ({ prompt: Array(count).fill('x'), ...fields });

/** Continuations or examples that are computed or wait. */
async function taken({ url }: Server): Promise<number> {
  const answer = await fetch(`${url}/health`);
  const { completions, predictions } = (await answer.json()) as Record<string, number>;
  return (completions ?? predictions)!;
}

async function untilTaken(server: Server, count: number): Promise<void> {
  while ((await taken(server)) !== count) await sleep(10);
}

test('pipelined requests of connections that close give their slots back', async () => {
  const server = await started(10);
  const sent = posted(path, many(4)).repeat(4);
  const sockets = await Promise.all(Array.from({ length: 4 }, () => opened(server.url, sent)));
  await untilTaken(server, 64);
  for (const socket of sockets) socket.destroy();
  await untilTaken(server, 0);
});

test('a stream that nobody reads holds no slot once it is decoded, and is closed', async () => {
  const server = await started(0, { writeMs: 100, piece: 'a'.repeat(10_000) });
  const socket = await opened(server.url);
  socket.pause();
  // More than what the system keeps of it.
  socket.write(posted(path, { prompt: Array(16).fill('x'), stream: true, max_tokens: 60 }));
  await untilTaken(server, 16);
  await untilTaken(server, 0);
  await sleep(1000);
  expect(await text(socket)).not.toContain('[DONE]');
});

test('a server that stops closes connections of half requests after the grace, silent ones at once', async () => {
  const server = await started(1);
  const halves = [
    'POST /v1',
    'POST /v1/completions HTTP/1.1\r\nhost: loc',
    posted(path, many(1)).slice(0, -3),
  ];
  const half = await Promise.all(halves.map((sent) => opened(server.url, sent)));
  const silent = await opened(server.url);
  await taken(server);
  const ended: string[] = [];
  silent.resume().once('close', () => ended.push('silent'));
  for (const socket of half) socket.resume().once('close', () => ended.push('half'));
  const stopped = server.close(100).then(() => ended.push('server'));
  await closed(silent);
  expect(ended).toEqual(['silent']);
  await stopped;
  await Promise.all(half.map(closed));
  expect(ended.sort()).toEqual(['half', 'half', 'half', 'server', 'silent']);
});

test('answers that a shutdown cuts are 503, or end with an error in their stream', async () => {
  const server = await started(1);
  const whole = answered(server.url, posted(path, many(2)));
  const stream = answered(server.url, posted(path, many(2, { stream: true })));
  await untilTaken(server, 4);
  await server.close(20);
  const error = {
    ...{ message: 'The server is shutting down, and has not finished this request.', type: 'server_error' },
    ...{ param: null, code: 'shutting_down' },
  };
  expect(await whole).toMatchObject({ status: 503, body: JSON.stringify({ error }) });
  const { status, body } = await stream;
  const events = body.split('\r\n').filter((line) => line.startsWith('data: '));
  expect(status).toBe(200);
  expect(JSON.parse(events.at(-1)!.slice('data: '.length))).toEqual({ error });
  expect(body).not.toContain('cancelled');
});

test('predictions end with their client, and are 503 where a shutdown cuts them', async () => {
  const predict: TrainedRun['predict'] = (_: unknown, { signal }: { readonly signal?: AbortSignal } = {}) =>
    new Promise<never>((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason)));
  const run = { name: 'patient', step: 1, continuesText: false, predict } as unknown as TrainedRun;
  const server = await started(0, { run });
  const sent = posted('/predict', { instances: ['a', 'b'] });
  const sockets = await Promise.all([opened(server.url, sent.repeat(2)), opened(server.url, sent)]);
  await untilTaken(server, 6);
  for (const socket of sockets) socket.destroy();
  await untilTaken(server, 0);
  const cut = answered(server.url, sent);
  await untilTaken(server, 2);
  await server.close(0);
  expect(await cut).toMatchObject({ status: 503, body: expect.stringContaining('"code":"shutting_down"') });
});

test('a request on a connection that is still open is refused while the server stops', async () => {
  const server = await started(1);
  const first = posted(path, many(1, { max_tokens: 60 }));
  const socket = await opened(server.url, first);
  await untilTaken(server, 1);
  const stopped = server.close(10_000);
  socket.write(first);
  const read = await text(socket);
  await stopped;
  expect(read.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200']);
});

/** 5,000 values, one within the other. */
const deep = (open: string, close: string) => `${open.repeat(5000)}1${close.repeat(5000)}`;
const fields = ['prompt', 'stop', 'model', 'logit_bias', 'stream_options', 'max_tokens', 'user', 'none'];

test.each(fields)('deep JSON in %s is refused by its name', async (field) => {
  const { url } = await started(0);
  for (const value of [deep('[', ']'), deep('{"a":', '}')]) {
    const given = field === 'prompt' ? '' : '"prompt": "a", ';
    const sent = posted(path, `{${given}"${field}": ${value}}`, ['connection: close']);
    const { status, body } = await answered(url, sent);
    const message = `${field}: expected values nested at most 32 deep.`;
    expect([status, JSON.parse(body).error]).toEqual([
      400,
      { message, type: 'invalid_request_error', param: field, code: null },
    ]);
  }
});

test.each<[string, string, number, string]>([
  ['__proto__', '{"prompt": "a", "__proto__": 1}', 400, '"__proto__" is not supported.'],
  [
    '__proto__ in biases',
    '{"prompt": "a", "logit_bias": {"__proto__": 1}}',
    400,
    'logit_bias: the name "__proto__" is not supported.',
  ],
  ['a body that is deep', deep('[', ']'), 400, 'The body: expected values nested at most 32 deep.'],
])('%s is told by what is true of it', async (_, sent, status, message) => {
  const { url } = await started(0);
  const answer = await answered(url, posted(path, sent, ['connection: close']));
  const { error } = JSON.parse(answer.body);
  expect([answer.status, error.message.slice(0, message.length)]).toEqual([status, message]);
});

const crlf = '\r\n';
const head = `GET /health HTTP/1.1${crlf}`;
const chunked = `POST ${path} HTTP/1.1${crlf}host: localhost${crlf}content-type: application/json${crlf}transfer-encoding: chunked${crlf}${crlf}`;

test.each<[string, string, number]>([
  ['no HTTP', `nonsense${crlf}${crlf}`, 400],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00', 400],
  ['another version', `GET / HTTP/9.9${crlf}${crlf}`, 400],
  ['large headers', `${head}a: ${'b'.repeat(20_000)}${crlf}${crlf}`, 431],
  ['a bad length', `POST ${path} HTTP/1.1${crlf}host: localhost${crlf}content-length: -1${crlf}${crlf}`, 400],
  ['a bad chunk', `${chunked}zz${crlf}`, 400],
  ['a chunk with a large extension', `${chunked}1;a=${'b'.repeat(20_000)}${crlf}`, 413],
  ['no host', `${head}connection: close${crlf}${crlf}`, 400],
  ['an empty host', `${head}host:${crlf}connection: close${crlf}${crlf}`, 403],
  ['a host that is none', `${head}host: a b${crlf}connection: close${crlf}${crlf}`, 400],
  [
    'a target that is none',
    `GET http://[ HTTP/1.1${crlf}host: localhost${crlf}connection: close${crlf}${crlf}`,
    400,
  ],
  ['a proxy’s target', `CONNECT a:1 HTTP/1.1${crlf}host: localhost${crlf}${crlf}`, 405],
  ['an expectation', `${head}host: localhost${crlf}expect: wonders${crlf}${crlf}`, 417],
  ['TRACE', `TRACE / HTTP/1.1${crlf}host: localhost${crlf}connection: close${crlf}${crlf}`, 404],
])('%s gets an error in the documented form', async (_, sent, wanted) => {
  const { url } = await started(0);
  const { status, head, body } = await answered(url, sent);
  expect(status).toBe(wanted);
  expect(head).toMatch(/content-type: application\/json/i);
  expect(JSON.parse(body)).toEqual({
    error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: null },
  });
});

test.each(['LOCALHOST', 'LocalHost:80', '127.0.0.1', '127.8.9.10:1', '[::1]:8000'])(
  'the host %s is this machine',
  async (host) => {
    const { url } = await started(0);
    const { status } = await answered(url, `${head}host: ${host}${crlf}connection: close${crlf}${crlf}`);
    expect(status).toBe(200);
  },
);
