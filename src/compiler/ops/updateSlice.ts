/** @file Slice update at a runtime index, by which a cache of keys and values grows. */

import { CompilerError, formatSpec, type TensorSpec } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

function checkShapes([x, rows, index]: readonly TensorSpec[], axis: number): void {
  const fits =
    x!.dtype === rows!.dtype &&
    x!.shape.length === rows!.shape.length &&
    x!.shape.every((dim, i) => (i === axis ? rows!.shape[i]! <= dim : rows!.shape[i] === dim));
  const isIndex =
    index!.dtype === 'int32' &&
    (index!.shape.length === 0 || (axis > 0 && index!.shape.join() === `${x!.shape[0]}`));
  if (fits && isIndex) return;
  throw new CompilerError(
    `updateSlice: expected rows like x but for axis ${axis}, and an int32 scalar${axis > 0 ? ' or vector of an index for each item of axis 0' : ''}, ` +
      `got ${formatSpec(x!)}, ${formatSpec(rows!)} and ${formatSpec(index!)}.`,
  );
}

/** The positions 0 … count - 1 of an axis, as int32. */
const positions = (count: number): tf.Tensor1D => tf.range(0, count, 1, 'int32');

/** The largest index up to `index` at which all rows fit, at least 0: [], or [items, 1]. */
const clamped = (index: tf.Tensor, size: number, rows: number): tf.Tensor => {
  const fitting = tf.maximum(
    tf.minimum(index, tf.scalar(size - rows, 'int32')),
    tf.scalar(0, 'int32'),
  ) as tf.Tensor;
  return index.rank === 0 ? fitting : tf.expandDims(fitting, 1);
};

/** Slices of `x` along `axis` at `places`: those of all items of axis 0, [count], or those of each, [items, count]. */
function taken(x: tf.Tensor, places: tf.Tensor, axis: number): tf.Tensor {
  return tf.gather(x, places as tf.Tensor1D, axis, places.rank - 1);
}

/**
 * Inputs x, rows and index, as in `updateSlice`. A lowering may write only the rows if the result shares x's memory.
 */
defineOperation('UpdateSlice', {
  inputs: ['x', 'rows', 'index'],
  attrs: ({ axis }) => ({ axis }),
  infer: (inputs, { axis }) => {
    checkShapes(inputs, axis as number);
    return [spec(inputs[0]!.shape, inputs[0]!.dtype)];
  },
  device: {
    kind: 'call',
    name: 'updateSlice',
    isInPlace: true,
    narrowOperands: 2,
    bytes: [0, 1],
    keeps: ({ inputs: [x] }) => x!.dtype !== 'bool',
    // The slice of a cache [B, N, S, H], by batch and head.
    shares: (_, [out], { axis }) => (out!.shape.length === 4 && axis === 2 ? { written: [[0, [0, 1]]] } : {}),
  },
  decompose: ([x, rows, index], { axis: at }) => {
    const axis = at as number;
    const [size, count] = [x!.shape[axis]!, rows!.shape[axis]!];
    // Index into `rows` for every position along the axis: [size], or [items, size].
    const row = tf.sub(positions(size), clamped(index!, size, count));
    const inside = tf.logicalAnd(
      tf.greaterEqual(row, tf.scalar(0, 'int32')),
      tf.less(row, tf.scalar(count, 'int32')),
    );
    const nearest = tf.maximum(tf.minimum(row, tf.scalar(count - 1, 'int32')), tf.scalar(0, 'int32'));
    const spread = count === 1 ? rows! : taken(rows!, nearest, axis);
    const shape = x!.shape.map((dim, i) => (i === axis || (i === 0 && row.rank === 2) ? dim : 1));
    return [tf.where(tf.reshape(inside, shape), spread, x!)];
  },
  gradient: (dy, [x, rows, index], _outputs, { axis: at }) => {
    const axis = at as number;
    const count = rows!.shape[axis]!;
    const begin = clamped(index!, x!.shape[axis]!, count);
    return [
      updateSlice(dy, tf.zerosLike(rows!), index!, axis),
      taken(dy, tf.add(positions(count), begin), axis),
    ];
  },
});

/**
 * Replaces the slices of `x` along `axis` from `index` on by `rows`.
 *
 * @param x of any shape.
 * @param rows of x's shape, but possibly shorter along `axis`.
 * @param index int32 scalar, clamped so that all rows fit; or [items of axis 0], an index for each, where `axis` is another.
 */
export function updateSlice(x: tf.Tensor, rows: tf.Tensor, index: tf.Tensor, axis: number): tf.Tensor {
  checkShapes([x, rows, index] as unknown as TensorSpec[], axis);
  if (rows.shape[axis] === 0) return x;
  return callComposite('UpdateSlice', [x, rows, index], { axis }, 2);
}
