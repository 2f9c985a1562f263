/** @file Gradients of single examples with bounded norms and noise: differentially private training (paxml/sgf.py). */
import { z } from 'zod';
import { hashString, ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { Configurable } from '../../hparams/index.js';
import { factorTo } from '../transforms/clipping.js';
import { epsilonOf } from './renyiAccountant.js';

/** Tensors by the path of their variable. */
type NamedGradients = Readonly<Record<string, Tensor>>;

/** The gradients of a part after its bound, and which share of them it reached. */
export interface ClippedPart {
  readonly grads: Record<string, Tensor>;
  /** [], from 0 to 1. */
  readonly fractionClipped: Tensor;
}

/** Gradient of a step from those of its parts, the sub-batches: each bounded, their plain mean, noise. */
export abstract class BaseStochasticGradient extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The gradients of the mean loss of one part, as they are added up. */
  abstract clip(grads: NamedGradients): ClippedPart;

  /** Whether `noisy` adds anything, so that it needs the key of a step. */
  abstract get hasNoise(): boolean;

  /**
   * The gradient of a variable from the mean over parts.
   *
   * @param parts parts of a step, on all ranks together.
   * @param prngKey int32 [2], of the step; absent where there is no noise.
   */
  abstract noisy(path: string, mean: Tensor, parts: number, prngKey: Tensor | undefined): Tensor;

  /** The epsilon after so many steps; undefined where it is not known. @param batchSize rows of a batch on all hosts */
  abstract epsilonAt(steps: number, batchSize: number): number | undefined;
}

/**
 * DP-SGD (Abadi et al., "Deep Learning with Differential Privacy", 2016): the gradient of each part is scaled to a norm of at
 * most `l2NormClip`, and normal noise of `noiseMultiplier` times that is added to their sum. Parts are the step's sub-batches,
 * one after the other: with `task.train.numSubBatches` as large as the batch, single examples, of whose gradients one stands in
 * memory at a time; with fewer, micro-batches. The mean is by parts, whatever the weights in them.
 */
export class DpSgdStochasticGradient extends BaseStochasticGradient.with({
  l2NormClip: z.number().positive().describe("Largest norm of a part's gradient."),
  noiseMultiplier: z
    .number()
    .nonnegative()
    .default(0)
    .describe('Standard deviation of the noise on the sum of all parts, over l2NormClip.'),
  normalizeGradients: z
    .boolean()
    .default(false)
    .describe(
      'Divides gradients by l2NormClip, so that learning rates do not depend on it (De et al., 2022).',
    ),
  numExamples: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Examples of the training data, for dp_metrics/epsilon; null writes none.'),
  delta: z
    .number()
    .gt(0)
    .lt(1)
    .default(1e-5)
    .describe('The delta that epsilon is for; below 1 / numExamples.'),
}) {
  override clip(grads: NamedGradients): ClippedPart {
    const all = Object.values(grads);
    const squares = all.map((grad) => tf.sum(tf.square(grad)) as Tensor);
    const factor = factorTo(this.hp.l2NormClip, tf.sqrt(squares.reduce((a, b) => tf.add(a, b))));
    return {
      grads: Object.fromEntries(Object.entries(grads).map(([path, grad]) => [path, tf.mul(grad, factor)])),
      fractionClipped: tf.cast(tf.less(factor, 1), 'float32'),
    };
  }

  override get hasNoise(): boolean {
    return this.hp.noiseMultiplier > 0;
  }

  override noisy(path: string, mean: Tensor, parts: number, prngKey: Tensor | undefined): Tensor {
    const { l2NormClip, noiseMultiplier, normalizeGradients } = this.hp;
    const grad = normalizeGradients ? tf.div(mean, l2NormClip) : mean;
    if (!this.hasNoise) return grad;
    const deviation = (noiseMultiplier * (normalizeGradients ? 1 : l2NormClip)) / parts;
    const key = ops.foldIn(prngKey!, hashString(`${path}#dp`));
    return tf.add(grad, tf.mul(ops.randomNormal(key, grad.shape), deviation));
  }

  override epsilonAt(steps: number, batchSize: number): number | undefined {
    const { noiseMultiplier, numExamples, delta } = this.hp;
    if (numExamples === null) return undefined;
    return epsilonOf(Math.min(1, batchSize / numExamples), noiseMultiplier, steps, delta);
  }
}

/** DP-SGD with a bound for each variable, which together make `l2NormClip`: √(1 / variables) of it, or by their sizes. */
export class PerLayerDpSgdStochasticGradient extends DpSgdStochasticGradient.with({
  useUniform: z
    .boolean()
    .default(true)
    .describe('Whether all variables have the same share, or one by √size.'),
}) {
  override clip(grads: NamedGradients): ClippedPart {
    const entries = Object.entries(grads);
    const total = entries.reduce((sum, [, { shape }]) => sum + sizeOf(shape), 0);
    const clipped = entries.map(([path, grad]) => {
      const share = this.hp.useUniform ? 1 / entries.length : sizeOf(grad.shape) / total;
      const factor = factorTo(this.hp.l2NormClip * Math.sqrt(share), tf.sqrt(tf.sum(tf.square(grad))));
      return {
        path,
        grad: tf.mul(grad, factor) as Tensor,
        isClipped: tf.cast(tf.less(factor, 1), 'float32'),
      };
    });
    return {
      grads: Object.fromEntries(clipped.map(({ path, grad }) => [path, grad])),
      fractionClipped: tf.mean(tf.stack(clipped.map(({ isClipped }) => isClipped))),
    };
  }
}
