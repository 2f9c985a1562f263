/** @file Programs in sequence as one. */
import { expect, test } from 'vitest';
import { chainPrograms, compileProgram, type Tensor, tf, traceProgram } from '../../../src/compiler/index.js';

const vector = { shape: [2], dtype: 'float32' } as const;

test('the second program takes what the first gives, by path, and results of both are there', async () => {
  const first = traceProgram(
    ({ x }: { x: Tensor }) => ({ sums: { a: tf.add(x, 1), b: tf.mul(x, 2) }, media: { picture: tf.neg(x) } }),
    { x: vector },
  );
  const second = traceProgram(
    ({ sums }: { sums: Record<'b' | 'a', Tensor> }) => ({ apart: tf.sub(sums.a, sums.b), same: sums.b }),
    { sums: { b: vector, a: vector } },
  );
  const chained = chainPrograms(first, second, ['media']);
  expect(chained.outputPaths).toEqual(['apart', 'same', 'media.picture']);
  const call = (await compileProgram(chained, { engine: 'onnx' })).bind({
    inputs: { x: Float32Array.of(3, 5) },
  });
  await call.run();
  expect(call.outputs).toMatchObject({
    apart: { data: Float32Array.of(-2, -4) },
    same: { data: Float32Array.of(6, 10) },
    media: { picture: { data: Float32Array.of(-3, -5) } },
  });
});
