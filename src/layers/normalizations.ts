/** @file Normalisation over the last dimension. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { constantInit } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';

/** Base of the normalisation layers. */
export abstract class BaseNormalization extends BaseLayer.with({
  dim: z.int().positive().describe('Size of the last dimension.'),
}) {
  static override readonly isAbstract = true;
  /** [..., dim] to the same shape. */
  abstract fprop(inputs: Tensor): Tensor;
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

function scaleFactor(scale: Tensor, direct: boolean): Tensor {
  return direct ? scale : tf.add(scale, 1);
}
