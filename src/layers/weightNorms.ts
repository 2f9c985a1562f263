/** @file Norms of weights, and maps with normalised weights (praxis/layers/normalizations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { build, sub } from '../hparams/index.js';
import { constantInit, Gaussian } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';
import { Linear } from './linears.js';
import { BaseNormalization, l2Normalized } from './normalizations.js';

/** (1 + g) w / |w|, where |w| is the norm of the weights of an output (Salimans and Kingma, 2016): w [..., dim], g [dim]. */
export class WeightNormL2 extends BaseNormalization {
  declare readonly theta: Theta<'g'>;

  protected override setup(): void {
    this.createVariable('g', { shape: [this.hp.dim], init: constantInit(0) });
  }

  /** Weights [..., dim] to the same shape. */
  override fprop(weights: Tensor): Tensor {
    const axes = weights.shape.slice(0, -1).map((_, axis) => axis);
    return tf.mul(l2Normalized(weights, axes), tf.add(this.theta.g, 1));
  }
}

/**
 * w / σ(w) for the largest singular value σ of w as a matrix [rest, dim] (Miyato et al., 2018). A step of training moves `u`
 * [dim], the estimate of its right singular vector, by `nPowerIteration` power iterations; gradients take u as a constant.
 */
export class SpectralNorm extends BaseNormalization.with({
  nPowerIteration: z.int().positive().default(1).describe('Power iterations of a step.'),
}) {
  protected override setup(): void {
    this.createVariable('u', {
      shape: [this.hp.dim],
      init: build(Gaussian.config()),
      collections: [WeightCollection.NON_TRAINABLE],
    });
  }

  /** Weights [..., dim] to the same shape. */
  override fprop(weights: Tensor): Tensor {
    const { dim, nPowerIteration } = this.hp;
    const matrix = tf.reshape(weights, [-1, dim]);
    const fixed = ops.stopGradient(matrix);
    let right: Tensor = tf.reshape(this.getVar('u'), [dim, 1]);
    let left: Tensor = right;
    for (let i = 0; i < nPowerIteration; i++) {
      left = l2Normalized(tf.matMul(fixed, right));
      right = l2Normalized(tf.matMul(fixed, left, true));
    }
    if (!this.doEval) this.updateVar('u', tf.reshape(right, [dim]));
    const largest = tf.matMul(tf.matMul(left, matrix, true), right);
    return tf.div(weights, tf.reshape(largest, []));
  }
}

/** A linear map whose weights pass through a norm: inputs [..., inputDims] times norm(w) [inputDims, outputDims]. */
export class WeightNormLinear extends Linear.with({
  weightNormTpl: sub(BaseNormalization, () => WeightNormL2.config()).describe('Norm of the weights.'),
}) {
  #norm!: BaseNormalization;

  protected override setup(): void {
    super.setup();
    this.#norm = this.createChild('weight_norm', this.hp.weightNormTpl, { dim: this.hp.outputDims });
  }

  override get weights(): Tensor {
    return this.#norm.fprop(this.theta.w);
  }
}
