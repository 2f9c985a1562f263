/** @file ONNX files for batches of any number of rows: what differs by them is computed, and what can't be is told. */
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { compile, exportModel, type Tensor, type Tree, tf } from '../../../src/compiler/index.js';

const w = Float32Array.from({ length: 12 }, (_, i) => Math.sin(i));
const origin = { name: 'test', producer: 'luthier', version: '1', metadata: { step: '3' } };
const params = { w: { shape: [4, 3], dtype: 'float32' as const } };
const specsFor = (rows: number) => ({
  params,
  batch: { x: { shape: [rows, 4], dtype: 'float32' as const } },
});

interface Given {
  readonly params: { readonly w: Tensor };
  readonly batch: { readonly x: Tensor };
}
type Function = (given: Given) => Tree<Tensor>;

const exported = (f: Function): Uint8Array => exportModel({ f, specsFor, weights: { w }, origin });

/** What a file and the compiler make of so many rows. */
async function both(f: Function, rows: number): Promise<[object, object]> {
  const x = Float32Array.from({ length: rows * 4 }, (_, i) => Math.cos(i));
  const session = await ort.InferenceSession.create(exported(f));
  const found = await session.run({ x: new ort.Tensor('float32', x, [rows, 4]) });
  const executable = await compile(f, specsFor(rows), { engine: 'eager' });
  const expected = await executable.run({
    params: { w: { ...params.w, data: w } },
    batch: { x: { shape: [rows, 4], dtype: 'float32', data: x } },
  });
  const shown = (values: object) =>
    Object.fromEntries(
      Object.entries(values).map(([name, { dims, shape = dims, data }]) => [
        name,
        { shape: [...shape], data: Array.from(data as Float32Array, (value) => Number(value.toFixed(5))) },
      ]),
    );
  return [shown(found), shown(expected)];
}

test.each<[string, Function]>([
  ['a product', ({ params: { w }, batch: { x } }) => ({ y: tf.matMul(x, w) })],
  ['a product with transposes', ({ params: { w }, batch: { x } }) => ({ y: tf.matMul(w, x, true, true) })],
  [
    'rows that are merged with others',
    ({ batch: { x } }) => ({ y: tf.reshape(x, [-1, 2]), z: tf.reshape(x, [-1]) }),
  ],
  ['a constant beside each row', ({ batch: { x } }) => ({ y: tf.concat([x, tf.ones([x.shape[0]!, 1])], 1) })],
  ['a factor of the rows', ({ batch: { x } }) => ({ y: tf.mul(x, x.shape[0]!), z: tf.div(x, x.shape[0]!) })],
  ['a sum over rows', ({ batch: { x } }) => ({ y: tf.mean(x, 0), z: tf.sum(x) })],
  [
    'bounds of a slice',
    ({ batch: { x } }) => ({ y: tf.slice(x, [0, 1], [x.shape[0]!, 2]), z: tf.reverse(x, 0) }),
  ],
  ['weights alone', ({ params: { w }, batch: { x } }) => ({ w2: tf.add(w, 1), y: tf.tile(x, [2, 1]) })],
])('%s', async (_, f) => {
  for (const rows of [1, 2, 13]) {
    const [found, expected] = await both(f, rows);
    expect(found).toEqual(expected);
  }
});

test('what is no line over the rows is told', () => {
  const square: Function = ({ batch: { x } }) => ({ y: tf.mul(x, x.shape[0]! ** 2) });
  expect(() => exported(square)).toThrow(
    /^The model can't be exported for any number of rows: constant v\d+ is not a line over that number\.$/,
  );
  const numbered: Function = ({ batch: { x } }) => ({
    y: tf.add(x, tf.reshape(tf.range(0, x.shape[0]!), [-1, 1])),
  });
  expect(() => exported(numbered)).toThrow("can't be exported for any number of rows");
});

test('two values of one name are told', () => {
  const f: Function = ({ batch: { x } }) => ({ x: tf.add(x, 1) });
  expect(() => exported(f)).toThrow(
    "An ONNX model can't have two values called 'x': rename an array, a prediction or a layer.",
  );
});
