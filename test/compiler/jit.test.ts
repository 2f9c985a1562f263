/** @file jit's cache, shape inference without values, and export to ONNX. */
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { evalShape, exportOnnx, type HostTensor, jit, type Tensor } from '../../src/compiler/index.js';
import { floats, host, ops, tf } from './support.js';

test('a function is traced once for each signature', async () => {
  let calls = 0;
  const f = jit((x: Tensor, y: { z: Tensor }) => {
    calls++;
    return { sum: tf.add(x, y.z), parts: [tf.neg(x)] };
  });
  const result: any = await f(host([2], [1, 2]), { z: host([], [3]) });
  expect(result).toEqual({ sum: host([2], [4, 5]), parts: [host([2], [-1, -2])] });
  await f(host([2], [5, 6]), { z: host([], [7]) });
  expect(calls).toBe(1);
  await f(host([3], [1, 2, 3]), { z: host([], [3]) });
  expect(calls).toBe(2);
  await f(host([3], [1, 2, 3], 'int32'), { z: host([], [3], 'int32') });
  expect(calls).toBe(3);
  // The first two are still there.
  await f(host([2], [1, 2]), { z: host([], [3]) });
  await f(host([3], [1, 2, 3]), { z: host([], [3]) });
  expect(calls).toBe(3);
});

test('concurrent calls share one compilation', async () => {
  let calls = 0;
  const f = jit((x: Tensor) => {
    calls++;
    return tf.square(x);
  });
  const results = await Promise.all([1, 2, 3].map((v) => f(host([1], [v]))));
  expect(results).toEqual([1, 4, 9].map((v) => host([1], [v])));
  expect(calls).toBe(1);
});

test('a failed compilation is tried again', async () => {
  let calls = 0;
  const f = jit((x: Tensor) => {
    if (calls++ === 0) throw new Error('the first time');
    return tf.neg(x);
  });
  await expect(f(host([1], [2]))).rejects.toThrow('the first time');
  expect(await f(host([1], [2]))).toEqual(host([1], [-2]));
});

test('shapes of a program that no memory could hold', () => {
  const before = process.memoryUsage().rss;
  const big = { shape: [100_000, 100_000], dtype: 'float32' } as const;
  const specs = evalShape(
    (x: Tensor, { y }: { y: Tensor }) => ({ product: tf.matMul(x, y), max: [tf.argMax(x, 1)] }),
    big,
    { y: { shape: [100_000, 7], dtype: 'float32' } },
  );
  expect(specs).toEqual({
    product: { shape: [100_000, 7], dtype: 'float32' },
    max: [{ shape: [100_000], dtype: 'int32' }],
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(1e9);
});

test('exported bytes are a model that ONNX Runtime runs', async () => {
  const x = floats([3, 4]);
  const f = (x: Tensor, w: Tensor) => ({ hot: ops.gelu(tf.matMul(x, w)), x });
  const bytes = exportOnnx(f, x, { shape: [4, 2], dtype: 'float32' });
  const session = await ort.InferenceSession.create(bytes);
  expect(session.inputNames).toEqual(['in0', 'in1']);
  expect(session.outputNames.length).toBe(2);
  const w = floats([4, 2], -1, 1, 9);
  const results = await session.run({
    in0: new ort.Tensor('float32', x.data as Float32Array, [3, 4]),
    in1: new ort.Tensor('float32', w.data as Float32Array, [4, 2]),
  });
  const expected = (await jit(f)(x, w)) as { hot: HostTensor };
  expect(results[session.outputNames[0]!]!.data).toEqual(expected.hot.data);
  expect(results[session.outputNames[1]!]!.data).toEqual(x.data);
  await session.release();
});
