/** @file Auxiliary results of gradients: eager calls leave no tensor behind, whether a result is returned or not. */
import { expect, it } from 'vitest';
import { compile, runEagerly, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';

const x = { shape: [3], dtype: 'float32' } as const;

/** A loss with two auxiliary results, of which one is returned. */
function step({ x }: { x: Tensor }) {
  const { value, aux, grads } = valueAndGrad(
    (params: { x: Tensor }) => {
      const squares = tf.square(params.x) as Tensor;
      return { value: tf.sum(squares) as Tensor, aux: { squares, unused: tf.mean(squares) as Tensor } };
    },
    { x },
  );
  return { value, squares: aux.squares, grads };
}

it('a compiled step of the eager engine keeps no tensor from run to run', async () => {
  const program = await compile(step, { x }, { engine: 'eager' });
  const call = program.bind({ inputs: { x: Float32Array.of(1, 2, 3) } });
  await call.run();
  const before = tf.memory().numTensors;
  await call.run();
  expect(tf.memory().numTensors).toBe(before);
  expect(call.outputs).toMatchObject({ squares: { data: Float32Array.of(1, 4, 9) } });
});

it('neither does a function that runs eagerly, even where it throws', async () => {
  const inputs = { x: { ...x, data: Float32Array.of(1, 2, 3) } };
  await runEagerly(step, inputs);
  const before = tf.memory().numTensors;
  await runEagerly(step, inputs);
  const failing = runEagerly((given) => {
    step(given);
    throw new Error('after the gradient');
  }, inputs);
  await expect(failing).rejects.toThrow('after the gradient');
  expect(tf.memory().numTensors).toBe(before);
});
