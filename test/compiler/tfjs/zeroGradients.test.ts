/** @file Gradients by integers: as numbers where they are differentiated, zeros where they are choices. */
import { expect, test } from 'vitest';
import { compiledResults, tf } from '../support.js';
import { host } from '../values.js';

type Tensor = import('@tensorflow/tfjs-core').Tensor;

const onnx = { engine: 'onnx', numThreads: 1 } as const;

/** Gradients of f's elements, times 1, 2, and so on, by all inputs. */
async function gradients(f: (...xs: Tensor[]) => Tensor, ...inputs: readonly ReturnType<typeof host>[]) {
  const results = await compiledResults(
    (xs: any) => {
      const dy = (y: Tensor) =>
        tf.tensor(
          Float32Array.from({ length: y.size }, (_, i) => i + 1),
          y.shape,
        );
      return tf.grads((...ys: Tensor[]) => {
        const y = tf.cast(f(...ys), 'float32');
        return tf.sum(tf.mul(y, dy(y)));
      })(xs);
    },
    [...inputs],
    onnx,
  );
  expect(results.map(({ dtype }) => dtype)).toEqual(inputs.map(() => 'float32'));
  return results.map(({ data }) => [...data]);
}

test('integers that are differentiated count as numbers', async () => {
  const [a, b] = [host([3], [1, 2, 4], 'int32'), host([3], [4, 5, 8], 'int32')];
  expect(await gradients(tf.mul, a, b)).toEqual([
    [4, 10, 24],
    [1, 4, 12],
  ]);
  const isTrue = host([2], [1, 0], 'bool');
  expect(await gradients((x) => tf.mul(tf.cast(x, 'int32'), 3), isTrue)).toEqual([[3, 6]]);
  const [base, exponent] = [host([2], [0.5, 4]), host([2], [2, 2], 'int32')];
  const [, byExponent] = await gradients(tf.pow, base, exponent);
  expect(byExponent).toEqual([0.25 * Math.log(0.5), 2 * 16 * Math.log(4)].map((x) => expect.closeTo(x, 5)));
});

test('choices among floats have no slope', async () => {
  const x = host([3], [1.5, -2, 4]);
  expect(await gradients((x) => tf.cast(x, 'int32'), x)).toEqual([[0, 0, 0]]);
  expect(
    await gradients((x) => {
      const isSmall = tf.logicalAnd(tf.greater(x, 0), tf.less(x, 3));
      return tf.mul(x, tf.cast(isSmall, 'float32'));
    }, x),
  ).toEqual([[1, 0, 0]]);
  const rows = host([2], [0, 2], 'int32');
  expect(await gradients((x, i) => tf.gather(x, i as any), x, rows)).toEqual([
    [1, 0, 2],
    [0, 0],
  ]);
});

test('an input that a call leaves out has no part in gradients', async () => {
  const [x, mean, variance] = [host([2, 1], [3, 5]), host([1], [1]), host([1], [4])];
  const normal = (...[a, b, c]: Tensor[]) =>
    tf.batchNorm(a as any, b as any, c as any, undefined, undefined, 0);
  const [byX, byMean] = await gradients(normal, x, mean, variance);
  expect([byX, byMean]).toEqual([[0.5, 1], [-1.5]]);
});
