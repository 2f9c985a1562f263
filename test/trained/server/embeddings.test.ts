/** @file POST /v1/embeddings of a run that starts from published weights of BERT: OpenAI's form, and the recorded vectors. */
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importPublished, loadRun, serve, type TrainedRun } from '../../../src/trained/index.js';
import type { Server } from '../../../src/trained/server/server.js';
import { temporaryDirectory } from '../../command.js';
import { distance, publishedFamily, recordOf } from '../../models/presets/published.js';

const folder = publishedFamily('bertEncoder');

/** Writes a run of the weights as they were published, with words of one token each: `w7` has id 7. */
async function publishedRun(): Promise<string> {
  const [published, jobLogDir] = ['embedder', 'run'].map((name) => join(temporaryDirectory(), name)) as [
    string,
    string,
  ];
  cpSync(folder, published, { recursive: true });
  const vocab = Object.fromEntries(
    Array.from({ length: 40 }, (_, id) => [id === 0 ? '[UNK]' : `w${id}`, id]),
  );
  const model = { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', vocab };
  const tokenizer = { pre_tokenizer: { type: 'Whitespace' }, model };
  writeFileSync(join(published, 'tokenizer.json'), JSON.stringify(tokenizer));
  rmSync(join(published, 'record.safetensors'));
  await importPublished({
    ...{ folder: published, jobLogDir, dtype: 'float32', maxLength: undefined, files: undefined },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  return jobLogDir;
}

let run: TrainedRun;
let server: Server;
const logged: unknown[] = [];

beforeAll(async () => {
  run = await loadRun(await publishedRun(), { engine: 'eager', batchSize: 2 });
  const limits = { maxBody: 4096, maxWaiting: 4 };
  server = await serve(run, { host: '127.0.0.1', port: 0, ...limits, log: (error) => logged.push(error) });
});

afterAll(async () => {
  await server.close(0);
  await run.dispose();
  expect(logged).toEqual([]);
});

async function post(path: string, body: unknown): Promise<{ status: number; body: any }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

const recorded = recordOf(folder);
const vectors = recorded.read('embeddings') as Float32Array;
const { 'text.ids': ids, 'text.paddings': paddings } = JSON.parse(recorded.layout.metadata.batch!);
recorded.close();
const [rows, steps] = ids.shape as [number, number];
/** The recorded rows as texts. */
const texts = Array.from({ length: rows }, (_, row) =>
  Array.from({ length: steps }, (_, t) => row * steps + t)
    .filter((at) => paddings.data[at] === 0)
    .map((at) => `w${ids.data[at]}`)
    .join(' '),
);

test('vectors of texts are those of transformers, in order, with the usage of tokens', async () => {
  const { status, body } = await post('/v1/embeddings', { model: 'embedder', input: texts });
  expect(status, JSON.stringify(body)).toBe(200);
  const tokens = texts.join(' ').split(' ').length;
  expect(body).toEqual({
    ...{ object: 'list', model: 'embedder', usage: { prompt_tokens: tokens, total_tokens: tokens } },
    data: texts.map((_, index) => ({ object: 'embedding', index, embedding: expect.any(Array) })),
  });
  expect(
    distance(
      body.data.flatMap(({ embedding }: any) => embedding),
      vectors,
    ),
  ).toBeLessThan(1e-5);
});

test("base64, which OpenAI's clients ask for, has the same numbers", async () => {
  const { body } = await post('/v1/embeddings', { input: texts[0], encoding_format: 'base64' });
  const bytes = Buffer.from(body.data[0].embedding, 'base64');
  const found = Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
  expect(distance(found, vectors.subarray(0, found.length))).toBeLessThan(1e-5);
});

test.each<[string, object, string, string]>([
  ['no input', { model: 'embedder' }, 'input: expected a text, or a list of 1 to 4, got nothing.', 'input'],
  [
    'too many',
    { input: Array(5).fill('w1') },
    'input: expected a text, or a list of 1 to 4, got ["w1","w1","w1","w1","w1"].',
    'input',
  ],
  ['tokens', { input: [[1, 2]] }, 'input: expected a text, or a list of 1 to 4, got [[1,2]].', 'input'],
  [
    'another format',
    { input: 'w1', encoding_format: 'hex' },
    'encoding_format: expected "float" or "base64", got "hex".',
    'encoding_format',
  ],
  [
    'dimensions',
    { input: 'w1', dimensions: 8 },
    '"dimensions" is not supported. The fields are: model, input, encoding_format, user.',
    'dimensions',
  ],
])('%s: refused with the field', async (_, sent, message, param) => {
  const { status, body } = await post('/v1/embeddings', sent);
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ message, param });
});

test('routes are told, and another model is not served', async () => {
  const unknown = await fetch(`${server.url}/v1/nothing`);
  expect(((await unknown.json()) as any).error.message).toBe(
    'There is no GET /v1/nothing: there are GET /health, GET /metrics, GET /v1/models, POST /predict and POST /v1/embeddings.',
  );
  const other = await post('/v1/embeddings', { model: 'other', input: 'w1' });
  expect(other.body.error).toMatchObject({ code: 'model_not_found', param: 'model' });
});
