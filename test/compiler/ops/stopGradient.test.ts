/** @file Values that count as constants: the same numbers, no gradient, and nothing of it in the program. */
import { describe, expect, test } from 'vitest';
import { compile, ops, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { host } from '../values.js';

const x = host([3], [1, -2, 3]);

/** A straight-through estimator: the sign's value, and the gradient of x; times a factor that is no variable. */
const loss = (p: Tensor): Tensor => {
  const sign = tf.add(p, ops.stopGradient(tf.sub(tf.sign(p), p)));
  return tf.sum(tf.mul(sign, ops.stopGradient(tf.exp(p)))) as Tensor;
};
const program = ({ x: given }: any) => {
  const { value, grads } = valueAndGrad((p: Tensor) => ({ value: loss(p), aux: {} }), given as Tensor);
  return { value, grads };
};

describe.each([['eager', { engine: 'eager', available: true }] as const, ...engines])('%s', (_, tested) => {
  test.skipIf(!tested.available)('value and gradient', async () => {
    const executable = await compile(program, { x }, { engine: tested.engine });
    const { value, grads } = structuredClone(await executable.run({ x })) as any;
    await executable.dispose();
    const factors = [...x.data].map(Math.exp);
    expect(value.data[0]).toBeCloseTo(factors[0]! - factors[1]! + factors[2]!, 4);
    expect([...grads.data]).toEqual(factors.map((factor) => expect.closeTo(factor, 4)));
  });
});

test('integers are themselves, and a stopped branch leaves no operation behind', () => {
  const ids = tf.tensor1d([1, 2], 'int32');
  expect(ops.stopGradient(ids).dtype).toBe('int32');
  const nodes = optimize(traceProgram(program, { x }).graph).nodes.map(({ op }) => op);
  expect(nodes.filter((op) => op === 'Exp')).toHaveLength(1);
  expect(nodes).not.toContain('Identity');
});
