/** @file Slice update at a runtime index, by which a cache of keys and values grows. */
import { spec } from '../rules/rule.js';
import { CompilerError, formatSpec, type Shape, type TensorSpec } from '../tensors.js';
import * as tf from '../tfjs.js';
import { callComposite, defineComposite } from './composite.js';

function checkShapes([x, rows, index]: readonly TensorSpec[], axis: number): void {
  const fits =
    x!.dtype === rows!.dtype &&
    x!.shape.length === rows!.shape.length &&
    x!.shape.every((dim, i) => (i === axis ? rows!.shape[i]! <= dim : rows!.shape[i] === dim));
  if (fits && index!.dtype === 'int32' && index!.shape.length === 0) return;
  throw new CompilerError(
    `updateSlice: expected rows like x but for axis ${axis}, and an int32 scalar, got ${formatSpec(x!)}, ${formatSpec(rows!)} and ${formatSpec(index!)}.`,
  );
}

/** The positions 0 … count - 1 of an axis, as int32. */
const positions = (count: number): tf.Tensor1D => tf.range(0, count, 1, 'int32');

const alongAxis = (x: tf.Tensor, rank: number, axis: number): tf.Tensor =>
  tf.reshape(
    x,
    Array.from({ length: rank }, (_, i) => (i === axis ? x.size : 1)),
  );

/** The largest index up to `index` at which all rows fit, at least 0. */
const clamped = (index: tf.Tensor, shape: Shape, rows: number, axis: number): tf.Tensor =>
  tf.maximum(tf.minimum(index, tf.scalar(shape[axis]! - rows, 'int32')), tf.scalar(0, 'int32'));

/**
 * Inputs x, rows and index, as in `updateSlice`. A lowering may write only the rows if the result shares x's memory.
 */
defineComposite('UpdateSlice', {
  inputs: ['x', 'rows', 'index'],
  attrs: ({ axis }) => ({ axis }),
  infer: (inputs, { axis }) => {
    checkShapes(inputs, axis as number);
    return [spec(inputs[0]!.shape, inputs[0]!.dtype)];
  },
  decompose: ([x, rows, index], { axis: at }) => {
    const axis = at as number;
    const [size, count] = [x!.shape[axis]!, rows!.shape[axis]!];
    // Index into `rows` for every position along the axis.
    const row = tf.sub(positions(size), clamped(index!, x!.shape, count, axis));
    const inside = tf.logicalAnd(
      tf.greaterEqual(row, tf.scalar(0, 'int32')),
      tf.less(row, tf.scalar(count, 'int32')),
    );
    const nearest = tf.maximum(tf.minimum(row, tf.scalar(count - 1, 'int32')), tf.scalar(0, 'int32'));
    const spread = count === 1 ? rows! : tf.gather(rows!, nearest as tf.Tensor1D, axis);
    return [tf.where(alongAxis(inside, x!.rank, axis), spread, x!)];
  },
  gradient: (dy, [x, rows, index], _outputs, { axis: at }) => {
    const axis = at as number;
    const count = rows!.shape[axis]!;
    const begin = clamped(index!, x!.shape, count, axis);
    return [
      updateSlice(dy, tf.zerosLike(rows!), index!, axis),
      tf.gather(dy, tf.add(positions(count), begin) as tf.Tensor1D, axis),
    ];
  },
});

/**
 * Replaces what `x` holds along `axis` from `index` on by `rows`.
 *
 * @param x of any shape.
 * @param rows of x's shape, but possibly shorter along `axis`.
 * @param index int32 scalar, clamped so that all rows fit.
 */
export function updateSlice(x: tf.Tensor, rows: tf.Tensor, index: tf.Tensor, axis: number): tf.Tensor {
  checkShapes([x, rows, index] as unknown as TensorSpec[], axis);
  if (rows.shape[axis] === 0) return x;
  return callComposite('UpdateSlice', [x, rows, index], { axis }, 2);
}
