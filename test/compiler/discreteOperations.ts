/** @file Operations of random programs on integers and truth values, and indices by arithmetic. */
import { type Tensor, tf } from '../../src/compiler/index.js';

export const scalarInt = (value: number): Tensor => tf.scalar(value, 'int32');

/** Indices below `limit`, of ids by arithmetic. */
export function computedIndices(ids: Tensor, limit: number, n: number): Tensor {
  const [next, last] = [tf.add(ids, scalarInt(n)), scalarInt(limit - 1)];
  const forms: readonly (() => Tensor)[] = [
    () => tf.mod(next, scalarInt(limit)),
    () => tf.minimum(next, last),
    () => tf.maximum(tf.minimum(tf.sub(ids, scalarInt(2)), last), scalarInt(0)),
    () => tf.clipByValue(next, 0, limit - 1),
    () => tf.where(tf.less(next, scalarInt(limit)), next, tf.zerosLike(next)),
    () => tf.minimum(tf.cast(tf.mul(tf.cast(ids, 'float32'), 0.7), 'int32'), last),
    () => tf.minimum(tf.cast(tf.greater(ids, scalarInt(1)), 'int32'), last),
    () => tf.minimum(tf.floorDiv(tf.reshape(next, [2, 2]), scalarInt(2)), last),
  ];
  return forms[n % forms.length]!();
}

/** Of int32 [4]; `b` is 1 or more. */
export const integers: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
  tf.add,
  tf.sub,
  tf.mul,
  tf.floorDiv,
  tf.mod,
  tf.maximum,
  tf.minimum,
  tf.squaredDifference,
  (a) => tf.abs(tf.neg(a)),
  (a, b) => tf.cumsum(tf.where(tf.less(a, b), tf.square(a), b), 0),
  (a, b) => tf.matMul(tf.reshape(a, [2, 2]), tf.reshape(b, [2, 2]), false, true),
  (a, b) => tf.stack([tf.sum(a), tf.prod(b), tf.max(a), tf.min(b)]),
  (a, b) => tf.clipByValue(tf.concat([a, b]), -1, 2),
  (a, b) => tf.add(tf.relu(a), tf.cast(tf.exp(tf.minimum(b, scalarInt(3))), 'int32')),
];

/** Of bool [4]. */
export const truths: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
  tf.logicalAnd,
  tf.logicalOr,
  tf.logicalXor,
  tf.equal,
  tf.notEqual,
  (a) => tf.logicalNot(a),
  (a, b) => tf.stack([tf.any(a), tf.all(b)]),
  (a, b) => tf.where(a, b, tf.logicalNot(b)),
  (a, b) => tf.reverse(tf.concat([tf.tile(a, [2]), b]), 0),
  (a, b) => tf.greaterEqual(tf.sum(tf.cast(a, 'int32')), tf.cast(b, 'int32')),
];
