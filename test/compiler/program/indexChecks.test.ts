/** @file An index that is out of range is an error on every engine, which names where it stands, and changes nothing. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, IndexError, ops, tf, withScope } from '../../../src/compiler/index.js';
import { engines } from '../engines.js';
import { compiledResults, floats, host, ints, withGradient } from '../support.js';

const table = floats([6, 4]);
const logits = floats([2, 3, 5]);
const inLayer =
  (layer: string, f: (...inputs: any[]) => tf.Tensor) =>
  (...inputs: any[]): tf.Tensor =>
    withScope(layer, () => f(...inputs));

/** Ids of [2, 3], one of which is the given value. */
const idsWith = (value: number): HostTensor => host([2, 3], [0, 1, 2, 3, value, 2], 'int32');

const all = [...engines, ['eager', { engine: 'eager', available: true }] as const];

describe.each(all)('%s', (_, { engine, available }) => {
  const error = async (f: (inputs: any) => any, inputs: any): Promise<unknown> =>
    compiledResults(f, inputs, { engine, name: 'net' }).catch((error: unknown) => error);

  test.skipIf(!available).each([
    ['gather', ([x, i]: any) => tf.gather(x, i), 6, '6 rows of float32[6,4]'],
    ['gather along an axis', ([x, i]: any) => tf.gather(x, i, 1), 4, '4 rows of float32[6,4] along axis 1'],
    ['embeddingLookup', ([x, i]: any) => ops.embeddingLookup(x, i), 6, '6 rows of float32[6,4]'],
    ['its gradient', withGradient(inLayer('', ops.embeddingLookup), 1), 6, '6 rows of float32[6,4]'],
    [
      'views of ids',
      ([x, i]: any) => tf.gather(x, tf.reshape(tf.expandDims(tf.cast(i, 'int32'), 0), [6])),
      6,
      '6 rows of float32[6,4]',
    ],
    [
      'a part of a concatenation of inputs and constants',
      ([x, i]: any) => tf.gather(x, tf.concat([tf.transpose(i), tf.zeros([3, 2], 'int32')]) as any),
      6,
      '6 rows of float32[6,4]',
    ],
  ])('%s', async (_, f, limit, what) => {
    for (const value of [limit, -1, 2 ** 31 - 1, -(2 ** 31)]) {
      const found = (await error(f as any, [table, idsWith(value)])) as IndexError;
      expect(found).toBeInstanceOf(IndexError);
      expect(found).toMatchObject({ input: '1', at: [1, 1], run: 0 });
      expect(found.message).toBe(
        `net: input '1', element [1,1]: ${value} is not one of the ${what}, 0 to ${limit - 1}.`,
      );
    }
    await compiledResults(f as any, [table, idsWith(limit - 1)], { engine });
  });

  test.skipIf(!available)('labels, with the layer', async () => {
    const f = ([x, labels]: any) =>
      withScope('lm/softmax', () => ops.softmaxCrossEntropy(x, labels)) as tf.Tensor;
    for (const value of [5, -1])
      for (const g of [f, withGradient((x, labels) => f([x, labels]), 1)])
        expect(await error(g, [logits, idsWith(value)])).toEqual(
          new IndexError('net', {
            input: '1',
            at: [1, 1],
            problem: `${value} is not one of the 5 classes, 0 to 4 (in layer 'lm/softmax')`,
            run: 0,
          }),
        );
  });

  test.skipIf(!available)('what is cut away may be anything', async () => {
    const f = ([x, i]: any) => tf.gather(x, tf.slice(i, [0, 0], [2, 2]));
    await compiledResults(f, [table, host([2, 3], [0, 1, -9, 2, 3, 99], 'int32')], { engine });
    expect(await error(f, [table, host([2, 3], [0, 1, 2, 3, 99, 2], 'int32')])).toMatchObject({
      input: '1',
      at: [1, 1],
    });
    const strided = ([x, i]: any) => tf.gather(x, tf.reverse(tf.stridedSlice(i, [0, 2], [2, 0], [1, -2]), 0));
    await compiledResults(strided, [table, host([2, 3], [-9, -9, 1, -9, -9, 3], 'int32')], { engine });
    expect(await error(strided, [table, host([2, 3], [-9, -9, 1, -9, -9, 6], 'int32')])).toMatchObject({
      at: [1, 2],
    });
  });

  test.skipIf(!available)('indices that the program works out', async () => {
    const next = (i: tf.Tensor) => tf.add(i, tf.scalar(1, 'int32')) as tf.Tensor1D;
    const cases = [
      [inLayer('net/a', (x, i) => tf.gather(x, next(i))), table, 6, [1, 1]],
      [inLayer('net/a', (x, i) => ops.softmaxCrossEntropy(x, next(i))), logits, 5, [1, 1]],
      [inLayer('net/a', (x, i) => tf.unsortedSegmentSum(x, tf.reshape(next(i), [6]), 6)), table, 6, [4]],
    ] as const;
    for (const [f, x, limit, at] of cases) {
      const g = withGradient(f, 1);
      await compiledResults(g, [x, idsWith(limit - 2)], { engine });
      // A sum by segments leaves negative ones out.
      for (const value of at.length === 1 ? [limit - 1] : [limit - 1, -2]) {
        const found = (await error(g, [x, idsWith(value)])) as IndexError;
        expect(found).toBeInstanceOf(IndexError);
        expect(found.message).toContain(`${value + 1} is not one of the ${limit} `);
        expect(found.message).toContain(" (in layer 'net/a')");
        if (engine !== 'eager') expect(found.at).toEqual(at);
      }
    }
  });
});

test('constants are looked at when the program is compiled', async () => {
  const f = ([x]: any) => withScope('net/a', () => tf.gather(x, tf.tensor1d([1, 6], 'int32')));
  await expect(compile(f, [table])).rejects.toThrow(
    "GatherV2: 6 is not one of the 6 rows of float32[6,4], 0 to 5 (in layer 'net/a').",
  );
});

test('runs before the one with the bad index complete', async () => {
  for (const engine of ['onnx', 'native'] as const) {
    const executable = await compile(([x, i]: any) => tf.gather(x, i), [table, ints([3], 0, 6)], {
      engine,
      name: 'net',
      numThreads: 2,
    });
    const out = new Float32Array(3 * 12);
    const call = executable.bind({
      inputs: [table.data, Int32Array.of(0, 1, 2, 3, 4, 5, 6, 0, 0)],
      outputs: out,
      runs: 3,
    });
    await expect(call.run(3)).rejects.toMatchObject({ run: 2, at: [0], input: '1' });
    expect([...out.subarray(0, 24)]).toEqual([...table.data]);
    expect([...out.subarray(24)]).toEqual(new Array(12).fill(0));
    await call.run(2);
    await executable.dispose();
  }
});

test('a bad computed index skips the function that follows: parameters stay unchanged', async () => {
  const params = new Float32Array(1 << 16).fill(1);
  const grads = new Float32Array(1 << 16);
  const executable = await compile(
    ({ x, i }: any) => ({
      g: tf.mul(x, tf.sum(tf.gather(tf.tensor1d([1, 2, 3]), tf.add(i, tf.scalar(1, 'int32'))))),
    }),
    { x: { shape: [1 << 16], dtype: 'float32' }, i: { shape: [2], dtype: 'int32' } },
    {
      name: 'step',
      engine: 'native',
      numThreads: 2,
      following: {
        name: 'update',
        f: ({ p, g }: any) => ({ p: tf.sub(p, g) }),
        inputs: { p: { shape: [1 << 16], dtype: 'float32' }, g: { shape: [1 << 16], dtype: 'float32' } },
      },
    },
  );
  const ids = Int32Array.of(0, 1);
  const call = executable.bind({
    inputs: [
      { x: params, i: ids },
      { p: params, g: grads },
    ],
    outputs: [{ g: grads }, { p: params }],
  });
  await call.run();
  expect(new Set(params)).toEqual(new Set([-4]));
  ids[1] = 2;
  await expect(call.run()).rejects.toThrow(
    'step: indices that it computes, element [1]: 3 is not one of the 3 rows of float32[3], 0 to 2.',
  );
  expect(new Set(params)).toEqual(new Set([-4]));
  await executable.dispose();
});
