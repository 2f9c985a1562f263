/** @file Replacement of some rows of a tensor at an index known at run time: how a cache of keys and values grows. */
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

/** int32 [dim], along the axis of a tensor of that rank. */
const positions = (count: number): tf.Tensor1D => tf.range(0, count, 1, 'int32');

const alongAxis = (x: tf.Tensor, rank: number, axis: number): tf.Tensor =>
  tf.reshape(
    x,
    Array.from({ length: rank }, (_, i) => (i === axis ? x.size : 1)),
  );

/** The index from which on all rows fit. */
const clamped = (index: tf.Tensor, shape: Shape, rows: number, axis: number): tf.Tensor =>
  tf.maximum(tf.minimum(index, tf.scalar(shape[axis]! - rows, 'int32')), tf.scalar(0, 'int32'));

/** x, rows and index, as updateSlice has them. A lowering may write the rows alone where the result lies on x. */
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
    // Which row stands where, counted from the first that is replaced.
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
 * `x` with `rows` in place of what stands along `axis` from `index` on.
 *
 * @param x of any shape.
 * @param rows the shape of x but for `axis`, along which it may be shorter.
 * @param index int32 scalar; taken as the nearest with which all rows fit.
 */
export function updateSlice(x: tf.Tensor, rows: tf.Tensor, index: tf.Tensor, axis: number): tf.Tensor {
  checkShapes([x, rows, index] as unknown as TensorSpec[], axis);
  if (rows.shape[axis] === 0) return x;
  return callComposite('UpdateSlice', [x, rows, index], { axis }, 2);
}
