/** @file Which programs become a WebAssembly loop, and which don't. */
import { expect, test } from 'vitest';
import { type Tensor, type TensorSpec, type Tree, tf } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/program.js';
import { isElementwise } from '../../../src/compiler/wasm/lower.js';
import { build } from '../../../src/hparams/index.js';
import { AdamW, type BaseOptimizer, Sgd } from '../../../src/learners/index.js';

const float = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });
const int = (...shape: number[]): TensorSpec => ({ shape, dtype: 'int32' });
const bool = (...shape: number[]): TensorSpec => ({ shape, dtype: 'bool' });

const accepts = (f: (inputs: any) => Tree<Tensor>, inputs: Tree<TensorSpec>): boolean =>
  isElementwise(optimize(traceProgram(f, inputs).graph));

type Example = [string, (inputs: any) => Tree<Tensor>, Tree<TensorSpec>];

const ACCEPTED: Example[] = [
  ['arrays of one shape', ([x, y]) => tf.add(x, y), [float(7), float(7)]],
  ['arrays of several axes', ([x, y]) => tf.mul(x, y), [float(2, 3, 4), float(2, 3, 4)]],
  ['scalars beside arrays', ([x, s]) => tf.mul(x, s), [float(7), float()]],
  ['arrays of one element beside arrays', ([x, s]) => tf.mul(x, s), [float(7), float(1)]],
  ['constants', ([x]) => tf.add(x, 0.5), [float(7)]],
  ['an array of equal constants', ([x]) => tf.add(x, tf.fill([7], 0.5)), [float(7)]],
  ['a choice by a truth value', ([x, y]) => tf.where(tf.greater(x, y), x, y), [float(7), float(7)]],
  ['an input as output', ([x]) => [x, tf.neg(x)], [float(7)]],
];

test.each(ACCEPTED)('a loop runs %s', (_, f, inputs) => {
  expect(accepts(f, inputs)).toBe(true);
});

const REFUSED: Example[] = [
  ['a program without outputs', () => [], [float(7)]],
  ['an array without elements', ([x]) => tf.neg(x), [float(0)]],
  ['scalars alone', ([x, y]) => tf.add(x, y), [float(), float()]],
  ['one element alone', ([x, y]) => tf.add(x, y), [float(1), float(1)]],
  ['a scalar beside one element', ([x, y]) => tf.add(x, y), [float(), float(1)]],
  ['a scalar result beside an array', ([x, s]) => [tf.mul(x, s), tf.neg(s)], [float(7), float()]],
  ['arrays that broadcast', ([x, y]) => tf.add(x, y), [float(2, 3), float(3)]],
  ['another shape of as many elements', ([x]) => tf.neg(tf.reshape(x, [6])), [float(2, 3)]],
  ['outputs of two shapes', ([x, y]) => [tf.neg(x), tf.neg(y)], [float(7), float(8)]],
  ['an input of another shape that nothing reads', ([x]) => tf.neg(x), [float(7), float(8)]],
  ['a reduction', ([x]) => tf.sub(x, tf.sum(x)), [float(7)]],
  ['int32', ([x, y]) => tf.add(x, y), [int(7), int(7)]],
  ['an int32 scalar', ([x, s]) => tf.mul(x, tf.cast(s, 'float32')), [float(7), int()]],
  ['a bool input', ([c, x]) => tf.where(c, x, tf.neg(x)), [bool(7), float(7)]],
  ['a bool output', ([x]) => tf.greater(x, 0), [float(7)]],
  ['a truth value as a number', ([x]) => tf.cast(tf.greater(x, 0), 'float32'), [float(7)]],
  [
    'truth values that are compared',
    ([x, y]) => tf.where(tf.equal(tf.greater(x, 0), tf.greater(y, 0)), x, y),
    [float(7), float(7)],
  ],
  ['an operation without an instruction', ([x]) => tf.exp(x), [float(7)]],
  ['a constant array', ([x]) => tf.add(x, tf.tensor1d([1, 2, 3])), [float(3)]],
  ['a constant array as output', ([x]) => [tf.neg(x), tf.tensor1d([1, 2, 3])], [float(3)]],
];

test.each(REFUSED)('a loop does not run %s', (_, f, inputs) => {
  expect(accepts(f, inputs)).toBe(false);
});

const OPTIMIZERS = {
  AdamW: AdamW.config({ learningRate: 0.1, decoupledWeightDecay: 0.1 }),
  Sgd: Sgd.config({ learningRate: 0.1, momentum: 0.9 }),
};

test.each(Object.entries(OPTIMIZERS))("a loop runs %s's update", (_, config) => {
  const optimizer = build<BaseOptimizer>(config);
  for (const group of ['decay', 'noDecay'] as const) {
    const scalars = optimizer.hostScalars({ step: 0, learningRate: 0, gradScale: 1 }, group);
    const named = (names: readonly string[], spec: TensorSpec) =>
      Object.fromEntries(names.map((name) => [name, spec]));
    const accepted = accepts(
      ({ param, grad, slots, scalars }) => {
        const after = optimizer.update(param, grad, slots, scalars, group);
        return { param: after.param, slots: after.slots };
      },
      {
        param: float(1000),
        grad: float(1000),
        slots: named(optimizer.slotNames, float(1000)),
        scalars: named(Object.keys(scalars), float()),
      },
    );
    expect(accepted).toBe(true);
  }
});
