/** @file Shape inference without values, and export to ONNX. */
import * as ort from 'onnxruntime-node';
import { expect, test } from 'vitest';
import { evalShape, exportOnnx, type Tensor } from '../../../src/compiler/index.js';
import { compiledResults, floats, ops, tf } from '../support.js';

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
  const f = ({ x, w }: { x: Tensor; w: Tensor }) => ({ hot: ops.gelu(tf.matMul(x, w)), same: x });
  const bytes = exportOnnx(f, { x, w: { shape: [4, 2], dtype: 'float32' } });
  const session = await ort.InferenceSession.create(bytes);
  expect(session.inputNames).toEqual(['x', 'w']);
  expect(session.outputNames).toEqual(['hot', 'same']);
  const w = floats([4, 2], -1, 1, 9);
  const results = await session.run({
    x: new ort.Tensor('float32', x.data as Float32Array, [3, 4]),
    w: new ort.Tensor('float32', w.data as Float32Array, [4, 2]),
  });
  const [hot] = await compiledResults(f, { x, w });
  expect(results.hot!.data).toEqual(hot!.data);
  expect(results.same!.data).toEqual(x.data);
  await session.release();
});
