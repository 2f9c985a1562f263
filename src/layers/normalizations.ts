/** @file Normalisation of activations, over the last dimension or over a batch (praxis/layers/normalizations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { bothOf, selected, unpadded, weighedRows } from './core/masks.js';
import { constantInit } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';

/** x over its Euclidean norm along `axes`, all of them where absent; vectors of zeros stay zeros. */
export const l2Normalized = (x: Tensor, axes?: number[]): Tensor =>
  tf.mul(x, tf.rsqrt(tf.add(tf.sum(tf.square(x), axes, true), 1e-12)));

/** Base of the normalisation layers. */
export abstract class BaseNormalization extends BaseLayer.with({
  dim: z.int().positive().describe('Size of the last dimension.'),
}) {
  static override readonly isAbstract = true;
  /**
   * [..., dim] to the same shape.
   *
   * @param paddings [...], or [batch, time] of inputs with further dimensions, 1 for padding; sizes may be 1. Read only by
   *   norms over other positions.
   * @throws LayerError for paddings of another shape, where they are read
   */
  abstract fprop(inputs: Tensor, paddings?: Tensor): Tensor;
}

/** No normalisation. */
export class IdentityNorm extends BaseNormalization {
  override fprop(inputs: Tensor): Tensor {
    return inputs;
  }
}

const scaleFields = {
  epsilon: z.number().positive().default(1e-6).describe('Added to the variance.'),
};

/** (x - mean) / sqrt(variance + epsilon) * scale + bias (Ba et al., 2016). */
export class LayerNorm extends BaseNormalization.with({
  ...scaleFields,
  directScale: z
    .boolean()
    .default(false)
    .describe('Multiply by the variable scale, starting at 1; else by 1 + scale, starting at 0.'),
  useScale: z.boolean().default(true).describe('Whether there is a scale.'),
  useBias: z.boolean().default(true).describe('Whether there is a bias.'),
}) {
  declare readonly theta: Theta<'scale' | 'bias'>;

  protected override setup(): void {
    const { dim, directScale, useScale, useBias } = this.hp;
    const collections = [WeightCollection.SKIP_LP_REGULARIZATION];
    if (useScale) {
      this.createVariable('scale', { shape: [dim], init: constantInit(directScale ? 1 : 0), collections });
    }
    if (useBias) this.createVariable('bias', { shape: [dim], init: constantInit(0), collections });
  }

  override fprop(inputs: Tensor): Tensor {
    const { directScale, useScale, useBias, epsilon } = this.hp;
    const scale = useScale ? scaleFactor(this.theta.scale, directScale) : null;
    return ops.layerNorm(inputs, scale, useBias ? this.theta.bias : null, { epsilon });
  }
}

/** x / sqrt(mean(x^2) + epsilon) * scale (Zhang and Sennrich, 2019). */
export class RmsNorm extends BaseNormalization.with({
  ...scaleFields,
  directScale: z
    .boolean()
    .default(true)
    .describe('Multiply by the variable scale, starting at 1; else by 1 + scale, starting at 0.'),
}) {
  declare readonly theta: Theta<'scale'>;

  protected override setup(): void {
    this.createVariable('scale', {
      shape: [this.hp.dim],
      init: constantInit(this.hp.directScale ? 1 : 0),
      collections: [WeightCollection.SKIP_LP_REGULARIZATION],
    });
  }

  override fprop(inputs: Tensor): Tensor {
    const { directScale, epsilon } = this.hp;
    return ops.rmsNorm(inputs, scaleFactor(this.theta.scale, directScale), { epsilon });
  }
}

/** x / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich, 2019), without variables. */
export class RmsNormNoScale extends BaseNormalization.with(scaleFields) {
  override fprop(inputs: Tensor): Tensor {
    return ops.rmsNorm(inputs, null, { epsilon: this.hp.epsilon });
  }
}

function scaleFactor(scale: Tensor, direct: boolean): Tensor {
  return direct ? scale : tf.add(scale, 1);
}

/**
 * (x - mean) / sqrt(variance + epsilon) * (1 + gamma) + beta for each element of the last dimension (Ioffe and Szegedy,
 * 2015). Training uses the batch's mean and variance over all other dimensions, evaluation their moving averages:
 * moving = decay moving + (1 - decay) batch. As in Pax, the variance divides by N, not N - 1, in the moving average
 * too. Neither padding nor rows of the batch whose weight is 0 count; inputs whose first dimension is not that of the
 * batch need paddings to tell.
 */
export class BatchNorm extends BaseNormalization.with({
  epsilon: z.number().positive().default(1e-3).describe('Added to the variance.'),
  decay: z.number().min(0).max(1).default(0.999).describe('Share of the moving averages that a step keeps.'),
  useMovingAvgInTraining: z
    .boolean()
    .default(false)
    .describe(
      'Whether training normalises by the moving averages as well; then there is no gamma and no beta.',
    ),
  setPaddedOutputToZero: z.boolean().default(true).describe('Whether outputs are 0 where there is padding.'),
  forceEvalMode: z
    .boolean()
    .default(false)
    .describe('Whether training, too, takes the moving averages as they are, as with a pretrained network.'),
  gammaInit: z
    .number()
    .default(0)
    .describe(
      'Initial value of gamma: at -1, which multiplies by 0, a residual block begins as the identity.',
    ),
}) {
  declare readonly theta: Theta<'beta' | 'gamma'>;

  protected override setup(): void {
    const shape = [this.hp.dim];
    if (!this.hp.useMovingAvgInTraining) {
      this.createVariable('beta', { shape, init: constantInit(0) });
      this.createVariable('gamma', { shape, init: constantInit(this.hp.gammaInit) });
    }
    const collections = [WeightCollection.NON_TRAINABLE];
    this.createVariable('moving_mean', { shape, init: constantInit(0), collections });
    this.createVariable('moving_variance', { shape, init: constantInit(1), collections });
  }

  override fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const { epsilon, useMovingAvgInTraining, setPaddedOutputToZero } = this.hp;
    const leading = inputs.shape.slice(0, -1);
    const kept = paddings && tf.expandDims(unpadded(this, alongTime(paddings, leading), leading), -1);
    const counted = this.#counted(inputs, kept);
    const [mean, variance] = this.moments(inputs, counted);
    const normalized = tf.mul(countedOf(tf.sub(inputs, mean), counted), tf.rsqrt(tf.add(variance, epsilon)));
    const outputs = useMovingAvgInTraining
      ? normalized
      : tf.add(tf.mul(normalized, tf.add(this.theta.gamma, 1)), this.theta.beta);
    return kept && setPaddedOutputToZero ? selected(outputs, kept) : outputs;
  }

  /** Whether normalisation is by the moving averages, which stay as they are. */
  get #isFixed(): boolean {
    return this.doEval || this.hp.forceEvalMode;
  }

  /** What counts, bool [..., 1]: all that is no padding, and, where there are statistics of the batch, no row of weight 0. */
  #counted(inputs: Tensor, kept: Tensor | undefined): Tensor | undefined {
    return bothOf(kept, this.#isFixed ? undefined : weighedRows(this, inputs));
  }

  /**
   * Mean and variance [dim] for normalising; updates the moving averages in training.
   *
   * @param keep bool [..., 1], false for elements that do not count; sizes may be 1. Absent: all count.
   */
  protected moments(inputs: Tensor, keep: Tensor | undefined): [Tensor, Tensor] {
    const { decay, useMovingAvgInTraining } = this.hp;
    const moving = (): [Tensor, Tensor] => [this.getVar('moving_mean'), this.getVar('moving_variance')];
    if (this.#isFixed) return moving();
    const count = keep && countOf(keep, inputs.shape.slice(0, -1));
    const axes = inputs.shape.slice(0, -1).map((_, axis) => axis);
    /** Of elements that are 0 where they do not count. */
    const meanOf = (x: Tensor): Tensor =>
      count ? tf.div(tf.sum(x, axes), tf.maximum(count, 1)) : tf.mean(x, axes);
    const mean = meanOf(countedOf(inputs, keep));
    const variance = meanOf(tf.square(countedOf(tf.sub(inputs, mean), keep)));
    const move = (name: string, value: Tensor): void => {
      const before = this.getVar(name);
      const after = tf.add(tf.mul(before, decay), tf.mul(value, 1 - decay)) as Tensor;
      // A batch of padding alone has no mean.
      this.updateVar(name, count ? tf.where(tf.greater(count, 0), after, before) : after);
    };
    move('moving_mean', mean);
    move('moving_variance', variance);
    return useMovingAvgInTraining ? moving() : [mean, variance];
  }
}

/** Paddings [batch, time] for positions of shape `leading`, which has more dimensions; others as they are. */
function alongTime(paddings: Tensor, leading: readonly number[]): Tensor {
  const fits = paddings.shape.every((size, axis) => size === 1 || size === leading[axis]);
  if (paddings.rank !== 2 || !fits) return paddings;
  return tf.reshape(paddings, [...paddings.shape, ...leading.slice(2).map(() => 1)]);
}

/** Number of the positions of shape `leading` for which `keep`, of that shape and 1 behind it, holds; a scalar. */
function countOf(keep: Tensor, leading: readonly number[]): Tensor {
  return tf.sum(tf.broadcastTo(tf.cast(keep, 'float32'), [...leading, 1]));
}

/** `x` where `keep` holds, 0 elsewhere; all of it without one. */
const countedOf = (x: Tensor, keep: Tensor | undefined): Tensor => (keep ? selected(x, keep) : x);
