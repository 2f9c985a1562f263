/** @file ONNX files: dimensions of any size, names and constants; what can't have any size is told with its operation. */
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import {
  compile,
  exportOnnx,
  type OpenSpec,
  type Tensor,
  type Tree,
  tf,
} from '../../../src/compiler/index.js';
import type { OnnxOptions } from '../../../src/compiler/onnx/exportModel.js';

const w = Float32Array.from({ length: 12 }, (_, i) => Math.sin(i));
const params = { w: { shape: [4, 3], dtype: 'float32' as const } };
const inputs = { params, batch: { x: { shape: ['batch', 4], dtype: 'float32' as const } } };
const options: OnnxOptions = {
  inputNames: { 'batch.x': 'x', 'params.w': 'w' },
  constants: { 'params.w': w },
};

interface Given {
  readonly params: { readonly w: Tensor };
  readonly batch: { readonly x: Tensor };
}
type Function = (given: Given) => Tree<Tensor>;

const exported = (f: Function): Uint8Array => exportOnnx(f, inputs, options);

const shown = (values: object) =>
  Object.fromEntries(
    Object.entries(values).map(([name, { dims, shape = dims, data }]) => [
      name,
      { shape: [...shape], data: Array.from(data as Float32Array, (value) => Number(value.toFixed(5))) },
    ]),
  );

/** What a file and the compiler make of so many rows. */
async function both(f: Function, rows: number): Promise<[object, object]> {
  const x = Float32Array.from({ length: rows * 4 }, (_, i) => Math.cos(i));
  const session = await ort.InferenceSession.create(exported(f));
  const found = await session.run({ x: new ort.Tensor('float32', x, [rows, 4]) });
  const array = { shape: [rows, 4], dtype: 'float32', data: x } as const;
  const executable = await compile(f, { params, batch: { x: array } }, { engine: 'eager' });
  const expected = await executable.run({ params: { w: { ...params.w, data: w } }, batch: { x: array } });
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
])('%s', async (name, f) => {
  // ONNX says nothing of the mean of no rows.
  for (const rows of name === 'a sum over rows' ? [1, 13] : [0, 1, 13]) {
    const [found, expected] = await both(f, rows);
    expect(found).toEqual(expected);
  }
});

test('what keeps a dimension from having any size is told with its operation', () => {
  const square: Function = ({ batch: { x } }) => ({ y: tf.mul(x, x.shape[0]! ** 2) });
  expect(() => exported(square)).toThrow(
    "exportOnnx: batch can't have any size: input 2 of the operation /Mul_0 is 169, 289, 484 where batch is 13, 17, 22. Compute it from the shapes of inputs by sums and products, or give the dimension a number.",
  );
  const numbered: Function = ({ batch: { x } }) => ({
    y: tf.add(x, tf.reshape(tf.range(0, x.shape[0]!), [-1, 1])),
  });
  expect(() => exported(numbered)).toThrow(
    'of the operation /Add_0 is a constant [13,1] that has other values along a dimension',
  );
  const even: Function = ({ batch: { x } }) => {
    const rows = 2 * Math.ceil(x.shape[0]! / 2);
    return {
      y: tf.pad(x, [
        [0, rows - x.shape[0]!],
        [0, 0],
      ]),
    };
  };
  expect(() => exported(even)).toThrow("batch can't have any size");
  const branch: Function = ({ batch: { x } }) => ({ y: x.shape[0]! > 20 ? tf.exp(x) : tf.log(x) });
  expect(() => exported(branch)).toThrow('the operation is /Log_0, /Log_0, /Exp_0 where batch is 13, 17, 22');
  const more: Function = ({ batch: { x } }) => ({ y: x.shape[0]! > 20 ? tf.exp(tf.neg(x)) : tf.neg(x) });
  expect(() => exported(more)).toThrow("batch can't have any size");
  const fixed: Function = ({ batch: { x } }) => ({ y: tf.reshape(x, [8, 4]) });
  expect(() => exported(fixed)).toThrow(
    /^exportOnnx: the function can't be traced for 'batch' = 13: .*8,4.* If it asks for one size of 'batch', give the dimension that number\.$/,
  );
});

test('two dimensions of any size', async () => {
  const f = ({ ids, table }: { ids: Tensor; table: Tensor }) => {
    const [rows, length] = ids.shape as [number, number];
    const flat = tf.reshape(tf.gather(table, tf.reshape(ids, [rows * length])), [rows * length, 2]);
    const each = tf.reshape(flat, [rows, length, 2]);
    const scores = tf.softmax(tf.matMul(each as any, each as any, false, true));
    const sum = tf.sum(tf.mul(tf.matMul(scores, each), 1 / (rows * length)));
    const joined = tf.concat([each, tf.zeros([rows, length, 1])], 2);
    return { joined, sum, longer: tf.tile(tf.reshape(ids, [length, rows]), [2, 3]) };
  };
  const given = (rows: number, length: number) => ({
    ids: {
      shape: [rows, length],
      dtype: 'int32' as const,
      data: Int32Array.from({ length: rows * length }, (_, i) => (i * 7) % 5),
    },
    table: {
      shape: [5, 2],
      dtype: 'float32' as const,
      data: Float32Array.from({ length: 10 }, (_, i) => Math.sin(i)),
    },
  });
  const ids: OpenSpec = { shape: ['batch', 'length'], dtype: 'int32' };
  const session = await ort.InferenceSession.create(
    exportOnnx(f, { ids, table: { shape: [5, 2], dtype: 'float32' } }),
  );
  const shapes = session.outputMetadata.map((each) => each.isTensor && each.shape);
  expect(shapes).toEqual([['batch', 'length', 3], [], ['2*length', '3*batch']]);
  for (const [rows, length] of [
    [1, 1],
    [3, 2],
    [2, 40],
  ] as const) {
    const { ids, table } = given(rows, length);
    const found = await session.run({
      ids: new ort.Tensor('int32', ids.data, ids.shape),
      table: new ort.Tensor('float32', table.data, table.shape),
    });
    const executable = await compile(f, { ids, table }, { engine: 'eager' });
    expect(shown(found)).toEqual(shown(await executable.run({ ids, table })));
  }
});

test('names of a single tensor, of a list, and of what is not there', async () => {
  const x: OpenSpec = { shape: ['n', 4], dtype: 'float32' };
  const plain = await ort.InferenceSession.create(exportOnnx((x: Tensor) => tf.neg(x), x));
  expect([plain.inputNames, plain.outputNames]).toEqual([['input'], ['output']]);
  const names = { inputNames: 'v0', outputNames: 'y' };
  const single = await ort.InferenceSession.create(exportOnnx((x: Tensor) => tf.neg(x), x, names));
  expect([single.inputNames, single.outputNames]).toEqual([['v0'], ['y']]);
  const pair = await ort.InferenceSession.create(
    exportOnnx(([a, b]: Tensor[]) => [tf.add(a!, b!), a!, a!], [x, x], {
      inputNames: { 1: 'b' },
      outputNames: { 0: 'sum', 1: 'a', 2: 'again' },
    }),
  );
  expect([pair.inputNames, pair.outputNames]).toEqual([
    ['0', 'b'],
    ['sum', 'a', 'again'],
  ]);
  const negative = (x: Tensor) => ({ y: tf.neg(x) });
  expect(() => exportOnnx(negative, x, { inputNames: { x: 'a' } })).toThrow(
    "exportOnnx: inputNames has no input at 'x': expected a name alone, for there is a single input.",
  );
  expect(() => exportOnnx(negative, x, { outputNames: 'z' })).toThrow(
    "one name stands for a single output, and there are 1: give outputNames by path, such as { 'y': 'x' }",
  );
  expect(() => exportOnnx((x: Tensor) => ({ input: tf.neg(x) }), x)).toThrow(
    "exportOnnx: a file can't have two values called 'input': give one of them another name, by inputNames or outputNames.",
  );
  expect(() => exportOnnx(negative, { shape: ['a b'], dtype: 'float32' })).toThrow("got 'a b'");
  expect(() => exportOnnx(negative, x, { constants: { '': w } })).toThrow(
    "dimension 'n' can't have any size",
  );
  expect(() => exportOnnx(negative, { shape: [4], dtype: 'float32' }, { constants: { '': w } })).toThrow(
    "expected 4 values for the constant '', got 12",
  );
});

test('variables are constants, of the values that they have', async () => {
  const kernel = tf.variable(tf.tensor2d([1, 2, 3, 4], [4, 1]));
  const file = exportOnnx((x: Tensor) => tf.matMul(x as any, kernel as any), {
    shape: ['batch', 4],
    dtype: 'float32',
  });
  kernel.assign(tf.zeros([4, 1]));
  const session = await ort.InferenceSession.create(file);
  const { output } = await session.run({
    input: new ort.Tensor('float32', Float32Array.of(1, 1, 1, 1, 0, 0, 0, 1), [2, 4]),
  });
  expect([...(output!.data as Float32Array)]).toEqual([10, 4]);
});
