/** @file Masks: they select and never multiply, since anything may stand in a padded place, NaN included. */
import { type Tensor, tf } from '../../compiler/index.js';
import type { BaseLayer } from './base.js';

/**
 * `x` where `mask` holds, else 0: nothing of the other elements gets into values or gradients. An operation whose own
 * gradient is not finite there, such as a division by 0, comes behind the selection, not before it.
 *
 * @param mask bool, broadcastable to the shape of `x`.
 */
export function selected(x: Tensor, mask: Tensor): Tensor {
  return tf.where(mask, x, tf.scalar(0));
}

/** Where both masks hold, bool; one that is absent holds everywhere. */
export function bothOf(mask: Tensor | undefined, other: Tensor | undefined): Tensor | undefined {
  return mask && other ? tf.logicalAnd(mask, other) : (mask ?? other);
}

/** Where weights count: bool, false where they are 0. */
export const isWeighed = (weights: Tensor): Tensor => tf.notEqual(weights, 0);

/** Far above what a layer computes, and far below where products overflow. */
const HUGE = 1e30;

/**
 * Rows x [..., D] as they are, but for elements that are not finite, or are huge, in rows of weight 0: these are 0. The
 * gradient of what multiplies the rows is a sum over all of them, in which 0 times such an element is NaN.
 *
 * @param weights [...].
 */
export function tame(x: Tensor, weights: Tensor): Tensor {
  return selected(x, tf.logicalOr(tf.expandDims(isWeighed(weights), -1), tf.less(tf.abs(x), HUGE)));
}

/**
 * Σ weight · value over all elements, or over `axis`; values of weight 0 have no effect, whatever they are.
 *
 * @throws Error where values and weights differ in shape
 */
export function weightedSum(values: Tensor, weights: Tensor, axis?: number): Tensor {
  if (values.shape.join() !== weights.shape.join())
    throw new Error(
      `expected a weight for each of the values [${values.shape.join(', ')}], got weights [${weights.shape.join(', ')}].`,
    );
  return tf.sum(tf.mul(selected(values, isWeighed(weights)), weights), axis);
}

/**
 * Where there is no padding: bool, of the shape of `paddings`.
 *
 * @param paddings 1 for padding; each dimension is that of `shape`, or 1.
 * @throws LayerError for a mask of another shape
 */
export function unpadded(layer: BaseLayer, paddings: Tensor, shape: readonly number[]): Tensor {
  const fits =
    paddings.rank === shape.length &&
    paddings.shape.every((size, axis) => size === 1 || size === shape[axis]);
  if (!fits)
    throw layer.error(
      `paddings [${paddings.shape.join(', ')}] do not fit the inputs: expected [${shape.join(', ')}], or 1 in place of ` +
        'a size.',
    );
  return tf.less(paddings, 0.5);
}

/**
 * The rows of the batch that count, bool [B, 1, …] of the rank of `x`: those with a weight that is not 0. Undefined where
 * the caller gave no weights, or the first dimension of `x` is not that of the batch.
 */
export function weighedRows(layer: BaseLayer, x: Tensor): Tensor | undefined {
  const { rowWeights } = layer.context;
  const [rows, ...rest] = x.shape;
  if (rowWeights === undefined || rowWeights.shape[0] !== rows) return undefined;
  const counts = isWeighed(tf.reshape(rowWeights, [rows!, -1]));
  return tf.reshape(tf.any(counts, 1), [rows!, ...rest.map(() => 1)]);
}
