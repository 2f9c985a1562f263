/** @file Attention within loops stays whole: gradients read logarithms of sums, of the turn that made them. */
import { describe, expect, test } from 'vitest';
import { compile, ops, type Tensor, tf, valueAndGrad } from '../../../../src/compiler/index.js';
import { expectCloseToLargest, leavesOf } from '../../support.js';
import { floats, host, ints } from '../../values.js';
import { hasCompiler } from '../compilerSupport.js';
import { kindOf, planOf } from '../plans.js';

const [TURNS, BATCH, LENGTH, HEADS, DIMS] = [3, 2, 20, 2, 4];

/** Attention of each turn's values over themselves, with all that may hide a key, given and computed in the turn. */
function turnsOf(unroll: boolean) {
  return ({ start, w, scale, ids, key, prefix }: Record<string, Tensor>): Tensor => {
    const numbers = tf.range(0, TURNS, 1, 'int32') as Tensor;
    const [last] = ops.scan(
      (carry: Tensor, { weight, number }: { weight: Tensor; number: Tensor }) => {
        const q = tf.reshape(tf.matMul(tf.reshape(carry, [-1, HEADS * DIMS]), weight), [
          BATCH,
          LENGTH,
          HEADS,
          DIMS,
        ]) as Tensor;
        const shifted = tf.cast(tf.greater(tf.add(ids!, number), 1), 'int32') as Tensor;
        const options: ops.AttentionOptions = {
          causal: true,
          window: { before: 9 },
          mask: tf.mul(tf.sum(weight), scale!) as Tensor,
          segments: { queries: shifted, keys: shifted },
          prefix: prefix!,
          dropout: { key: tf.add(key!, number) as Tensor, keepProb: 0.8 },
        };
        return [tf.add(carry, ops.attention(q, q, carry, options)) as Tensor, []];
      },
      start!,
      { weight: w!, number: numbers },
      { unroll },
    );
    return last;
  };
}

const specs = {
  start: floats([BATCH, LENGTH, HEADS, DIMS], -1, 1, 1),
  w: floats([TURNS, HEADS * DIMS, HEADS * DIMS], -0.5, 0.5, 2),
  scale: floats([LENGTH, LENGTH], -1, 1, 3),
  ids: ints([BATCH, LENGTH], 0, 3),
  key: host([2], [3, 8], 'int32'),
  prefix: host([BATCH], [5, 0], 'int32'),
};

const gradedBy = (turns: (inputs: Record<string, Tensor>) => Tensor) => (inputs: Record<string, Tensor>) =>
  valueAndGrad(
    (moved: Record<string, Tensor>) => {
      const result = turns({ ...inputs, ...moved });
      return { value: tf.sum(tf.square(result)) as Tensor, aux: result };
    },
    { start: inputs.start!, w: inputs.w!, scale: inputs.scale! },
  );

test('the gradient of a loop reads no weights of all pairs', () => {
  const f = (...tensors: Tensor[]) => {
    const named = Object.fromEntries(Object.keys(specs).map((name, i) => [name, tensors[i]!]));
    const { value, grads } = gradedBy(turnsOf(false))(named) as any;
    return [value, grads.start, grads.w, grads.scale];
  };
  const { units, arenaBytes } = planOf(f, ...Object.values(specs));
  const calls = units.filter(({ kind }) => kind === 'call').map(kindOf);
  expect(calls).toEqual(['attention', 'attentionGrad', 'attentionMaskGrad']);
  expect(units.some((unit) => unit.kind === 'product' && unit.batch.length > 0)).toBe(false);
  expect(arenaBytes).toBeLessThan(4 * TURNS * BATCH * HEADS * LENGTH * LENGTH * 4);
});

describe.runIf(hasCompiler)('natively', () => {
  test('a loop has the results and gradients of its turns one after the other', async () => {
    const f = (inputs: Record<string, Tensor>) => ({
      loop: gradedBy(turnsOf(false))(inputs),
      turns: gradedBy(turnsOf(true))(inputs),
    });
    const executable = await compile(f as never, specs as never, { engine: 'native', numThreads: 2 });
    const { loop, turns } = (await executable.run(specs as never)) as any;
    await executable.dispose();
    leavesOf(loop).forEach((leaf, i) => {
      expectCloseToLargest(leaf, leavesOf(turns)[i]!, `leaf ${i}`);
    });
  });
});
