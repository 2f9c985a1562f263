/** @file Predictions for records, texts and image files, by programs and by HTTP: the input's own preprocessing, names of classes, and what is refused. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { exportOnnx } from '../../src/trained/exportOnnx.js';
import { loadRun, type TrainedRun } from '../../src/trained/index.js';
import { serve } from '../../src/trained/server/server.js';
import { temporaryDirectory } from '../command.js';
import { Reviews, Shades, Sums } from '../fixtures/classifiers/experiments/classifiers.js';
import { classifiers, greyImage, reviews, shades, sums, trainedOn } from './classifierRuns.js';

const experiments = [join(classifiers, 'experiments')];
const folder = temporaryDirectory();
let run: TrainedRun;
/** The last line of the evaluation. */
let evaluated: Record<string, unknown>;

beforeAll(async () => {
  const data = reviews(folder);
  const directory = await trainedOn(Reviews, data);
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  evaluated = lines.map((line) => JSON.parse(line)).findLast(({ program }) => program !== 'train');
  // The directory of the run is all that predictions take.
  rmSync(data);
  run = await loadRun(directory, { experiments, engine: 'onnx' });
  return () => run.dispose();
});

test('texts and records are classified by name, labels left out', async () => {
  const records = [{ text: 'a great film' }, { text: 'this awful film', verdict: 'unheard of', more: 1 }];
  const found = await run.predict(records);
  expect(found.map((prediction) => prediction.class)).toEqual(['good', 'bad']);
  const { good, bad } = found[0]!.probabilities!;
  expect(good! + bad!).toBeCloseTo(1, 12);
  const logits = found[0]!.outputs.logits as readonly number[];
  expect(good! / bad!).toBeCloseTo(Math.exp(logits[1]! - logits[0]!), 4);
  const [text] = await run.predict(['a great film']);
  expect(text!.class).toBe('good');
  expect(text!.probabilities!.good).toBeCloseTo(good!, 5);
});

test('an evaluation writes tables with the names of the classes', () => {
  const classes = ['bad', 'good'];
  expect(evaluated['Metrics/confusion']).toEqual({
    classes,
    values: [
      [expect.any(Number), 0],
      [0, expect.any(Number)],
    ],
  });
  expect(evaluated['Metrics/by_class']).toEqual({
    ...{ rows: classes, columns: ['precision', 'recall', 'f1', 'weight'] },
    values: classes.map(() => [1, 1, 1, expect.any(Number)]),
  });
});

test('any number of examples is predicted, in batches of the dataset, each as alone', async () => {
  const texts = Array.from({ length: 37 }, (_, i) => (i % 3 === 0 ? 'one poor film' : 'one fine film'));
  const found = await run.predict(texts);
  expect(found.map((prediction) => prediction.class)).toEqual(
    texts.map((text) => (text.includes('fine') ? 'good' : 'bad')),
  );
  const [alone] = await run.predict(texts.slice(36));
  expect(found[36]!.probabilities!.good).toBeCloseTo(alone!.probabilities!.good!, 5);
});

const fine = (count: number) => Array.from({ length: count }, () => 'a film');

test.each<[string, readonly (string | object)[], string]>([
  ['none', [], 'predict: expected one example or more, got none.'],
  [
    'a record without its column, in a later batch',
    [...fine(18), { txt: 'a film' }],
    "predict: record 18: feature 'text', no column 'text'. Did you mean 'txt'? It has: txt.",
  ],
  [
    'another kind of value',
    ['a film', { text: 5 }],
    "predict: record 1: feature 'text', column 'text': expected a text, got 5",
  ],
  ['no record', [7 as never], 'predict: record 0: expected an object, { column: value, … }; got 7'],
])('examples are refused that are %s', async (_, examples, message) => {
  await expect(run.predict(examples as never)).rejects.toThrow(message);
});

const options = { host: '127.0.0.1', port: 0, maxBody: 10_000, maxWaiting: 4, log: console.error };

async function post(url: string, body: unknown): Promise<{ readonly status: number; readonly body: any }> {
  const response = await fetch(`${url}/predict`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

test('a server predicts what run.predict does, within its limits', async () => {
  await run.prepare();
  const server = await serve(run, options);
  const instances = ['a great film', { text: 'this awful film' }];
  const { status, body } = await post(server.url, { instances, model: null });
  expect({ status, body }).toEqual({
    status: 200,
    body: { model: 'classifiers.Reviews', predictions: await run.predict(instances) },
  });
  const errorOf = async (asked: object) => (await post(server.url, asked)).body.error;
  const refused = async (asked: object) => (await errorOf(asked)).message;
  const params = [{ instance: ['a'] }, { instances: [] }, { instances: ['a'], model: 3 }].map(errorOf);
  expect((await Promise.all(params)).map(({ param }) => param)).toEqual(['instance', 'instances', 'model']);
  expect(await refused({ instances: ['fine', { text: 1 }] })).toBe(
    "record 1: feature 'text', column 'text': expected a text, got 1",
  );
  expect(await refused({ instances: [] })).toBe('instances: expected a list of 1 to 4 examples, got 0.');
  expect(await refused({ instances: fine(5) })).toBe('instances: expected a list of 1 to 4 examples, got 5.');
  expect(await refused({ instance: ['a'] })).toBe(
    '"instance" is not supported. Did you mean \'instances\'? The fields are: model, instances.',
  );
  expect(await refused({ instances: ['a'], model: 'other' })).toBe(
    "The model 'other' is not served; the server has 'classifiers.Reviews'.",
  );
  const both = await Promise.all([1, 2].map(() => post(server.url, { instances: fine(3) })));
  expect(both.map((answer) => answer.status).sort()).toEqual([200, 429]);
  expect(await (await fetch(`${server.url}/health`)).json()).toEqual({
    ...{ status: 'ok', model: 'classifiers.Reviews', step: 60, predictions: 0 },
  });
  await server.close(0);
});

test('an exported file names the classes', () => {
  const { bytes, classes, inputs } = exportOnnx(run);
  expect({ classes, inputs }).toEqual({ classes: ['bad', 'good'], inputs: ['text.ids', 'text.paddings'] });
  expect(Buffer.from(bytes).includes('["bad","good"]')).toBe(true);
});

test('a regression gives numbers, and a batch of arrays still gives arrays', async () => {
  const directory = await trainedOn(Sums, sums(folder), { numTrainSteps: 400 });
  const regression = await loadRun(directory, { experiments, engine: 'onnx', batchSize: 2 });
  const found = await regression.predict([
    { a: 0.5, b: 0.25 },
    { a: '0', b: 0 },
    { a: 1, b: true },
  ]);
  expect(found).toEqual(found.map(() => ({ outputs: { predictions: [expect.any(Number)] } })));
  expect(found.map(({ outputs }) => (outputs.predictions as number[])[0])).toEqual([
    expect.closeTo(0.75, 0),
    expect.closeTo(0, 0),
    expect.closeTo(2, 0),
  ]);
  const data = Float32Array.of(0.5, 0.25);
  const { predictions } = await regression.predict({ inputs: { shape: [1, 2], dtype: 'float32', data } });
  expect(predictions!.data[0]).toBeCloseTo((found[0]!.outputs.predictions as number[])[0]!, 5);
  await expect(regression.predict([{ a: 1, b: 'x' }])).rejects.toThrow(
    `predict: record 0: feature 'inputs', column 'b': expected a number, got "x"`,
  );
  await regression.dispose();
});

test('image files are classified by their paths or bytes, with the classes that training found', async () => {
  const data = shades(folder);
  const directory = await trainedOn(Shades, data);
  rmSync(data, { recursive: true });
  const pictures = await loadRun(directory, { experiments, engine: 'onnx' });
  const file = join(folder, 'bright.png');
  writeFileSync(file, greyImage(230));
  const found = await pictures.predict([greyImage(10), file]);
  expect(found.map((prediction) => prediction.class)).toEqual(['dark', 'light']);
  await expect(pictures.predict([greyImage(1), new Uint8Array(4)])).rejects.toThrow(
    'predict: image 1: it is neither a PNG nor a JPEG image',
  );
  await expect(pictures.predict([{ path: file }])).rejects.toThrow(
    'predict: image 0: expected the path of a file or its bytes, got object',
  );
  const server = await serve(pictures, options);
  const b64 = Buffer.from(greyImage(10)).toString('base64');
  expect((await post(server.url, { instances: [{ b64 }] })).body.predictions[0].class).toBe('dark');
  // A server's clients don't read its files.
  const param = { type: 'invalid_request_error', param: 'instances', code: null };
  expect(await post(server.url, { instances: [{ b64 }, file] })).toEqual({
    status: 400,
    body: { error: { message: "image 1: expected a file's bytes, got string", ...param } },
  });
  expect((await post(server.url, { instances: [{ b64: '%' }] })).body.error.message).toBe(
    'instances[0].b64: expected base64.',
  );
  await server.close(0);
  await pictures.dispose();
});

test('a run saves the vocabulary that a text feature learned, and the classes that an image source found', async () => {
  const record = (directory: string) =>
    JSON.parse(readFileSync(join(directory, 'data/train.json'), 'utf8')).parts;
  const texts = await trainedOn(Reviews, reviews(folder), { numTrainSteps: 1 });
  const path = 'features.text.tokenizer';
  expect(record(texts)).toEqual({
    [path]: {
      class: 'CharTokenizer',
      identity: expect.stringMatching(/^CharTokenizer of \d+ characters \(sha256 [\da-f]{16}\)$/),
      learned: { vocabulary: expect.stringMatching(/^ adefg/) },
    },
  });
  const images = await trainedOn(Shades, shades(folder), { numTrainSteps: 1 });
  expect(record(images)).toEqual({
    source: {
      class: 'ImageFolder',
      identity: 'classes dark, light',
      learned: { classes: ['dark', 'light'] },
    },
  });
});
