/** @file `luthier serve` by real HTTP: answers, streams, errors, limits, clients that leave, and its end. */
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Completion } from '../../../src/trained/completion.js';
import { loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { serve } from '../../../src/trained/server/server.js';
import { type Running, runLuthier, startCommand, temporaryDirectory } from '../../command.js';
import { tinyRun } from '../../trained/tinyRun.js';

const limits = ['--batch_size=4', '--max_tokens=16', '--max_body=2000', '--max_waiting=40'];
let directory: string;
let run: TrainedRun;
let server: Running;
let url: string;

/** Starts the command; gives the address that it tells. */
async function started(): Promise<[Running, string]> {
  const command = ['serve', directory, '--port=0', ...limits];
  const running = startCommand(command, undefined, 'src/tools/commandLine.ts');
  let told = '';
  while (!told.includes('\n')) told += String(await once(running.child.stdout!, 'data'));
  return [running, /^Serving tiny\.Tiny, step 200, at (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(told)![1]!];
}

beforeAll(async () => {
  ({ directory } = await tinyRun());
  run = await loadRun(directory, { batchSize: 4 });
  [server, url] = await started();
});

afterAll(async () => {
  server.child.kill('SIGKILL');
  await run.dispose();
});

interface Answer {
  readonly status: number;
  readonly body: any;
}

async function post(body: unknown, type = 'application/json'): Promise<Answer> {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': type },
    body: sent,
  });
  return { status: response.status, body: await response.json() };
}

async function get(path: string): Promise<Answer> {
  const response = await fetch(`${url}${path}`);
  return { status: response.status, body: await response.json() };
}

/** The events of a streamed answer. */
async function events(body: object): Promise<any[]> {
  const response = await fetch(`${url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ ...body, stream: true }),
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const lines = (await response.text()).split('\n\n').filter((line) => line !== '');
  expect(lines.pop()).toBe('data: [DONE]');
  return lines.map((line) => JSON.parse(line.replace(/^data: /, '')));
}

test('a prompt is continued as loadRun does, with the usage of tokens', async () => {
  const { status, body } = await post({ model: 'tiny.Tiny', prompt: '182 a', max_tokens: 9 });
  const text = await run.generate('182 a', { maxTokens: 9 });
  expect(status).toBe(200);
  expect(body).toEqual({
    ...{ id: expect.stringMatching(/^cmpl-[\da-f-]{36}$/), object: 'text_completion' },
    ...{ created: expect.any(Number), model: 'tiny.Tiny' },
    choices: [{ index: 0, text, logprobs: null, finish_reason: 'length' }],
    usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 },
  });
});

test('the model and its health are told', async () => {
  expect(await get('/health')).toEqual({
    status: 200,
    body: { status: 'ok', model: 'tiny.Tiny', step: 200, completions: 0 },
  });
  expect((await get('/v1/models')).body).toEqual({
    object: 'list',
    data: [{ id: 'tiny.Tiny', object: 'model', created: expect.any(Number), owned_by: 'luthier' }],
  });
});

test('a stream gives pieces as they come, and the reason of the end', async () => {
  const body = { prompt: ['one two ', '182 a'], temperature: 1, seed: 7, stop: '9', max_tokens: 12 };
  const found = await events(body);
  const choices = found.map(({ choices: [choice] }) => choice);
  const settings = { temperature: 1, seed: 7, stop: '9', maxTokens: 12 };
  for (const [index, prompt] of body.prompt.entries()) {
    const own = choices.filter((choice) => choice.index === index);
    expect(own.map(({ text }) => text).join('')).toBe(await run.generate(prompt, settings));
    expect(own.slice(0, -1).every(({ finish_reason }) => finish_reason === null)).toBe(true);
    expect(own.at(-1)).toMatchObject({ text: '', finish_reason: expect.stringMatching(/^(stop|length)$/) });
  }
  expect(new Set(found.map(({ id }) => id)).size).toBe(1);
});

/** What clients send for what their users leave out, as recorded of them. */
const CLIENTS: readonly [string, object][] = [
  ['null for every optional field', { max_tokens: null, stop: null, stream: null, suffix: null, user: null }],
  ['null, objects and lists for fields that are unknown', { store: null, metadata: {}, tools: [] }],
  ['empty objects and lists', { logit_bias: {}, stream_options: {}, stop: [] }],
  ['the values of OpenAI’s documentation', { n: 1, best_of: 1, echo: false, logprobs: null, user: 'user-1' }],
  ['penalties of nothing', { presence_penalty: 0, frequency_penalty: 0.0, logit_bias: { 50256: 0 } }],
  ['flags for null', { logprobs: false, suffix: '', stream_options: { include_usage: null } }],
];

test.each(CLIENTS)('a request with %s is answered', async (_, fields) => {
  const { status, body } = await post({ prompt: '182 a', temperature: 0, max_tokens: 9, ...fields });
  expect(body.choices).toHaveLength(1);
  expect(status).toBe(200);
});

test('a stream ends with the usage of tokens where that is asked for', async () => {
  const body = { prompt: ['182 a', '1 '], max_tokens: 4, stream_options: { include_usage: true } };
  const found = await events(body);
  const usage = { prompt_tokens: 7, completion_tokens: 8, total_tokens: 15 };
  expect(found.pop()).toMatchObject({ choices: [], usage });
  expect(found.every((event) => event.usage === null && event.choices.length === 1)).toBe(true);
  expect((await events({ prompt: '1 ' })).some((event) => 'usage' in event)).toBe(false);
});

test('requests that come together get what each gets alone', async () => {
  const bodies = Array.from({ length: 12 }, (_, i) => ({
    prompt: '1 and 2\n2 and 3'.slice(0, 3 + i),
    ...{ temperature: 1.1, seed: i, max_tokens: 4 + (i % 5) },
  }));
  const alone: string[] = [];
  for (const body of bodies) alone.push((await post(body)).body.choices[0].text);
  const answers = await Promise.all(bodies.map((body) => post(body)));
  const together = answers.map(({ body }) => body.choices[0].text);
  expect(together).toEqual(alone);
  const unseeded = await Promise.all(Array.from({ length: 8 }, () => post({ prompt: '1 ', temperature: 2 })));
  expect(new Set(unseeded.map(({ body }) => body.choices[0].text)).size).toBeGreaterThan(1);
  const equal = { prompt: Array.from({ length: 8 }, () => '1 '), temperature: 2 };
  const texts = async (body: object) =>
    (await post(body)).body.choices.map(({ text }: { text: string }) => text);
  expect(new Set(await texts(equal)).size).toBeGreaterThan(1);
  expect(new Set(await texts({ ...equal, seed: 5 })).size).toBe(1);
});

test.each<[string, unknown, number, string, string | null]>([
  ['no prompt', {}, 400, 'prompt: expected a text, or a list of 1 to 16, got nothing.', 'prompt'],
  [
    'an empty prompt',
    { prompt: '' },
    400,
    'The prompt is empty: the model continues text, and needs a token to begin with.',
    'prompt',
  ],
  [
    'a long prompt',
    { prompt: 'x'.repeat(24) },
    400,
    'The prompt has 24 tokens; prompt and continuation together have 24 at most, so expected 23 or fewer.',
    'prompt',
  ],
  [
    'many tokens',
    { prompt: 'a', max_tokens: 17 },
    400,
    'max_tokens: expected an integer from 1 to 16, got 17.',
    'max_tokens',
  ],
  [
    'a wrong number',
    { prompt: 'a', temperature: '1' },
    400,
    'temperature: expected a number from 0, got "1".',
    'temperature',
  ],
  ['many samples', { prompt: 'a', n: 41 }, 400, 'n: expected an integer from 1 to 40, got 41.', 'n'],
  [
    'text behind the continuation',
    { prompt: 'a', suffix: 'b' },
    400,
    'suffix: expected "", as others are not supported, got "b".',
    'suffix',
  ],
  [
    'biases',
    { prompt: 'a', logit_bias: { 7: -101 } },
    400,
    'logit_bias.7: expected a number from -100 to 100, got -101.',
    'logit_bias',
  ],
  [
    'another option of streams',
    { prompt: 'a', stream_options: { include_usage: 1 } },
    400,
    'stream_options.include_usage: expected true or false, got 1.',
    'stream_options',
  ],
  [
    'null for the prompt',
    { prompt: null },
    400,
    'prompt: expected a text, or a list of 1 to 16, got null.',
    'prompt',
  ],
  ['a list', [1], 400, 'The body: expected a JSON object, got [1].', null],
  [
    'another model',
    { prompt: 'a', model: 'gpt' },
    404,
    "The model 'gpt' is not served; the server has 'tiny.Tiny'.",
    'model',
  ],
  [
    'too many prompts',
    { prompt: Array.from({ length: 17 }, () => 'a') },
    400,
    'prompt: expected a text, or a list of 1 to 16, got ["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"….',
    'prompt',
  ],
  ['bad JSON', '{"prompt": ', 400, 'The body: expected JSON: Unexpected end of JSON input.', null],
  ['no body', '', 400, 'The body: expected JSON: Unexpected end of JSON input.', null],
  ['a large body', { prompt: 'a'.repeat(3000) }, 413, 'The body has more than 2000 bytes.', null],
])('a request with %s is refused, and says why', async (_, sent, status, message, param) => {
  const answer = await post(sent);
  expect(answer).toEqual({
    status,
    body: {
      error: {
        message,
        type: 'invalid_request_error',
        param,
        code: status === 404 ? 'model_not_found' : null,
      },
    },
  });
});

test('unknown fields, routes, types and hosts are refused without a stack', async () => {
  const unknown = await post({ prompt: 'a', temprature: 1 });
  expect(unknown.body.error.message).toMatch(
    /^"temprature" is not supported\. Did you mean 'temperature'\? The fields are: model, prompt, /,
  );
  const plain = await post('prompt=a', 'text/plain');
  expect([plain.status, plain.body.error.message]).toEqual([
    415,
    "The body's content type: expected application/json, got text/plain.",
  ]);
  // A body whose length is not told is counted as it comes.
  const streamed = await fetch(`${url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, duplex: 'half' },
    body: new Blob([JSON.stringify({ prompt: 'a'.repeat(3000) })]).stream(),
  });
  expect([streamed.status, await streamed.json()]).toMatchObject([
    413,
    { error: { message: 'The body has more than 2000 bytes.' } },
  ]);
  const lost = await get('/v1/chat');
  expect([lost.status, lost.body.error.message]).toEqual([
    404,
    'There is no GET /v1/chat: there are GET /health, GET /metrics, GET /v1/models, GET /, POST /v1/completions, POST /v1/chat/completions, POST /tokenize and POST /detokenize.',
  ]);
  const asked = request(`${url}/health`, { headers: { host: 'evil.example' } }).end();
  const [response] = await once(asked, 'response');
  expect([response.statusCode, JSON.parse(await textOf(response)).error.message]).toEqual([
    403,
    "The host 'evil.example' is not this server's: expected localhost, 127.0.0.1, ::1.",
  ]);
  const broken = connect(Number(new URL(url).port), '127.0.0.1');
  broken.end('nonsense\r\n\r\n');
  expect(await textOf(broken)).toMatch(/^HTTP\/1\.1 400 Bad Request/);
});

test('what is too much to wait is refused until there is room', async () => {
  const many = Array.from({ length: 16 }, () => 'a');
  const answers = await Promise.all(Array.from({ length: 5 }, () => post({ prompt: many })));
  const statuses = answers.map(({ status }) => status);
  expect(statuses).toContain(200);
  expect(statuses).toContain(429);
  const refused = answers.find(({ status }) => status === 429)!;
  expect(refused.body.error).toEqual({
    ...{ message: '32 continuations are decoded or wait, of at most 40. Try again later.' },
    ...{ type: 'rate_limit_error', param: null, code: 'overloaded' },
  });
  expect((await post({ prompt: 'a' })).status).toBe(200);
});

test('continuations of a client that leaves are cancelled', async () => {
  const one = await loadRun(directory);
  const made: Completion[] = [];
  const beginAll = one.beginAll.bind(one);
  one.beginAll = async (...args) => {
    made.push(...(await beginAll(...args)));
    return made;
  };
  const options = { host: '127.0.0.1', port: 0, maxBody: 1000, maxTokens: 100, maxWaiting: 16 };
  const errors: unknown[] = [];
  const local = await serve(one, { ...options, log: (error) => errors.push(error) });
  const leaving = new AbortController();
  const response = await fetch(`${local.url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, signal: leaving.signal },
    body: JSON.stringify({ prompt: Array.from({ length: 16 }, () => '1'), stream: true }),
  });
  await response.body!.getReader().read();
  leaving.abort();
  while (made.some(({ finishReason }) => finishReason === undefined)) await sleep(1);
  expect(made.at(-1)!.finishReason).toBe('cancelled');
  const next = await fetch(`${local.url}/health`);
  expect(await next.json()).toMatchObject({ completions: 0 });
  await local.close(1000);
  await one.dispose();
  expect(errors).toEqual([]);
});

test('an error of its own is told to the log, and not to the client', async () => {
  const errors: unknown[] = [];
  const failing = await loadRun(directory);
  failing.beginAll = () => Promise.reject(new Error('a secret path'));
  const options = { host: '127.0.0.1', port: 0, maxBody: 1000, maxTokens: 100, maxWaiting: 16 };
  const local = await serve(failing, { ...options, log: (error) => errors.push(error) });
  const response = await fetch(`${local.url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"prompt": "a"}' },
  });
  expect([response.status, await response.json()]).toEqual([
    500,
    {
      error: {
        ...{
          message: 'The server failed to answer this request; its log has the reason.',
          type: 'server_error',
        },
        ...{ param: null, code: null },
      },
    },
  ]);
  expect(errors).toEqual([expect.objectContaining({ message: 'a secret path' })]);
  await local.close(0);
  await failing.dispose();
});

test('an answer under way when the server closes ends its connection', async () => {
  const one = await loadRun(directory);
  const options = { host: '127.0.0.1', port: 0, maxBody: 1000, maxTokens: 100, maxWaiting: 16 };
  const local = await serve(one, { ...options, log: () => undefined });
  const answer = fetch(`${local.url}/v1/completions`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ prompt: Array.from({ length: 16 }, () => '1') }),
  });
  const health = async () => (await (await fetch(`${local.url}/health`)).json()) as Answer['body'];
  while ((await health()).completions === 0) await sleep(1);
  const closed = local.close(60_000);
  const response = await answer;
  expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
  await response.json();
  await closed;
  await one.dispose();
});

test('a port that is taken ends the command with 1', async () => {
  const { port } = new URL(url);
  expect(await runLuthier(['serve', directory, `--port=${port}`])).toEqual({
    ...{ code: 1, signal: null, stdout: '' },
    stderr: `luthier serve: can't listen on 127.0.0.1, port ${port}: EADDRINUSE.\n`,
  });
});

test('SIGTERM lets a stream end, then the server', async () => {
  const streaming = events({ prompt: Array.from({ length: 16 }, () => '1'), seed: 1 });
  while ((await get('/health')).body.completions === 0) await sleep(1);
  server.child.kill('SIGTERM');
  const ends = (await streaming).filter(({ choices: [choice] }) => choice.finish_reason !== null);
  expect(ends.map(({ choices: [choice] }) => choice.finish_reason)).toEqual(Array(16).fill('length'));
  expect(await server.finished).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect((await server.finished).stdout).toBe(`Serving tiny.Tiny, step 200, at ${url}\nSIGTERM: stopped.\n`);
  await expect(fetch(url)).rejects.toThrow();
});

test('SIGINT while the model is compiled ends the compiler, without a stack', async () => {
  const folder = temporaryDirectory();
  const [compiler, begun] = [join(folder, 'cc'), join(folder, 'begun')];
  writeFileSync(compiler, `#!/bin/sh\ntouch ${begun}\nexec sleep 600\n`, { mode: 0o755 });
  const env = { CC: compiler, XDG_CACHE_HOME: join(folder, 'cache') };
  const command = ['serve', directory, '--port=0'];
  const { child, finished } = startCommand(command, undefined, 'src/tools/commandLine.ts', env);
  while (!existsSync(begun)) await sleep(10);
  child.kill('SIGINT');
  expect(await finished).toEqual({ code: 130, signal: null, stdout: 'SIGINT: stopped.\n', stderr: '' });
});
