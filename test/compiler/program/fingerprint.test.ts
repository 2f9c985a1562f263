/** @file Fingerprints: equal for programs that compute the same, other ones for all else. */
import { expect, test } from 'vitest';
import { ops, type Tensor, type TensorSpec, tf, withScope } from '../../../src/compiler/index.js';
import { fingerprint, operationsOf } from '../../../src/compiler/program/fingerprint.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

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

test('so do what a loop does in a turn, and the shape and type of a constant', () => {
  const turns = (f: (sum: any, row: any) => any, rows = 2) =>
    of(({ x }) => ({
      a: ops.scan(
        (sum: any, row: any) => [f(sum, row), []] as any,
        tf.zeros([3]),
        tf.slice(x, [0, 0], [rows, 3]),
      )[0],
    }));
  const constants = [[3], [1, 3]].flatMap((shape) =>
    (['int32', 'float32'] as const).map((dtype) =>
      of(({ x }) => ({
        a: tf.where(tf.cast(tf.tensor([0, 0, 0], shape as any, dtype), 'bool'), x, tf.neg(x)),
      })),
    ),
  );
  const programs = [
    turns(tf.add),
    turns(tf.sub),
    turns((sum, row) => tf.sub(row, sum)),
    turns(tf.add, 1),
    ...constants,
  ];
  expect(new Set(programs).size).toBe(programs.length);
  expect(turns(tf.add)).toBe(programs[0]);
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
  const turns = (length: number) =>
    operations(
      ({ x }) => ops.scan((sum: any) => [tf.exp(sum), []] as any, x as any, [] as any, { length })[0],
    );
  expect(turns(2)).not.toBe(turns(3));
  const named = (specs: any) =>
    operationsOf(traceProgram((given: any) => tf.neg(Object.values(given)[0] as Tensor), specs));
  expect(new Set([named({ x }), named({ y: x }), named({ x: { ...x, shape: [3, 2] } })]).size).toBe(3);
});
