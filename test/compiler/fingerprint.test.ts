/** @file Fingerprints: equal for programs that compute the same, other ones for all else. */
import { expect, test } from 'vitest';
import { fingerprint, operationsOf } from '../../src/compiler/fingerprint.js';
import { type Tensor, type TensorSpec, tf, withScope } from '../../src/compiler/index.js';
import { traceProgram } from '../../src/compiler/tracedProgram.js';

const x: TensorSpec = { shape: [2, 3], dtype: 'float32' };
type Inputs = { x: Tensor };

const of = (f: (inputs: Inputs) => any, inputs: object = { x }) =>
  fingerprint(traceProgram(f, inputs as { x: TensorSpec }));

test('layers, recording order and dead code do not change the fingerprint', () => {
  const plain = of(({ x }) => ({ a: tf.add(tf.exp(x), tf.neg(x)) }));
  const scoped = ({ x }: Inputs) =>
    withScope('lm/x', () => {
      tf.sqrt(x);
      const negative = tf.neg(x);
      return { a: tf.add(tf.exp(x), negative) };
    });
  expect(of(scoped)).toBe(plain);
});

test('a constant, an attribute, an operand, a shape, a path and the sign of zero do', () => {
  const programs: string[] = [
    of(({ x }) => ({ a: tf.mul(x, 1 / Math.LN2) })),
    of(({ x }) => ({ a: tf.mul(x, 3 / Math.LN2) })),
    of(({ x }) => ({ a: tf.mul(x, 0) })),
    of(({ x }) => ({ a: tf.mul(x, -0) })),
    of(({ x }) => ({ a: tf.sum(x, 0) })),
    of(({ x }) => ({ a: tf.sum(x, 1) })),
    of(({ x }) => ({ b: tf.sum(x, 1) })),
    of(({ x }) => ({ a: tf.sub(x, tf.exp(x)) })),
    of(({ x }) => ({ a: tf.sub(tf.exp(x), x) })),
    of(({ x }) => ({ a: tf.sub(tf.exp(x), x) }), { x: { ...x, shape: [3, 2] } }),
    of(({ y }: any) => ({ a: tf.sub(tf.exp(y), y) }), { y: x }),
  ];
  expect(new Set(programs).size).toBe(programs.length);
});

test('a large constant counts with all its values', () => {
  const constant = (last: number) =>
    of(({ x }) => {
      const values = new Float32Array(6000);
      values[5999] = last;
      return { a: tf.add(tf.sum(x), tf.tensor1d(values)) };
    });
  expect(constant(1)).not.toBe(constant(2));
});

test('operations are equal if only numbers differ', () => {
  const operations = (f: (inputs: Inputs) => any) => operationsOf(traceProgram(f, { x }));
  expect(operations(({ x }) => tf.mul(x, 2))).toBe(operations(({ x }) => tf.mul(x, 3)));
  expect(operations(({ x }) => tf.mul(x, 2))).not.toBe(operations(({ x }) => tf.add(x, 2)));
});
