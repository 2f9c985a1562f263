/** @file Losses of models over tokens: the softmax's, and those that layers add. */
import { type Tensor, tf } from '../../compiler/index.js';
import type { BaseSoftmax, SoftmaxOutput } from '../baseSoftmax.js';
import type { BaseLayer } from '../core/base.js';
import { weightedSum } from '../core/masks.js';

/** Targets of a language model; both tensors are [B, T]. */
export interface LmLabels {
  /** int32 ids to predict. */
  readonly classIds: Tensor;
  /** float32 weight of each prediction. */
  readonly classWeights: Tensor;
}

/** Outputs of a language model; the softmax's have leading dimensions [B, T]. */
export interface LmOutput extends Omit<SoftmaxOutput, 'perExampleWeight'> {
  /** [B]: sum over the sequence of weighted cross entropy. */
  readonly perSequenceXent: Tensor;
  /** Scalar, or null if no layer added a loss. */
  readonly auxLoss: Tensor | null;
  /** Scalar: avgXent plus auxLoss, the training loss. */
  readonly totalLoss: Tensor;
}

/** Weighted sum of the losses that layers added, a scalar; null if none did. */
export function auxLossOf({ context }: BaseLayer): Tensor | null {
  const losses = context.auxLosses.map(({ value, weight }) => (weight === 1 ? value : tf.mul(value, weight)));
  return losses.length === 0 ? null : losses.reduce((a, b) => tf.add(a, b));
}

/** A loss with those that layers added, if any did. */
export const withAuxLoss = (loss: Tensor, auxLoss: Tensor | null): Tensor =>
  auxLoss ? tf.add(loss, auxLoss) : loss;

/**
 * Losses of activations [B, T, D]. @param auxLoss sums up the losses that layers added, once the softmax has added its own
 */
export function lossesOf(
  layer: BaseLayer,
  softmax: BaseSoftmax,
  activations: Tensor,
  { classIds, classWeights }: LmLabels,
  auxLoss: () => Tensor | null = () => auxLossOf(layer),
): LmOutput {
  const output = softmax.fprop(activations, classWeights, classIds);
  const added = auxLoss();
  return {
    ...output,
    perSequenceXent: weightedSum(output.perExampleXent, classWeights, -1),
    auxLoss: added,
    totalLoss: withAuxLoss(output.avgXent, added),
  };
}
