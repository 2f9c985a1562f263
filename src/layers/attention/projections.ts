/** @file Projections of attention, from model depth to heads and back (praxis/layers/attentions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { softplus } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta, WeightHParams } from '../core/weights.js';

const projectionFields = {
  inputDim: z
    .int()
    .positive()
    .describe('Depth of the model: of the input, or of the output of an output projection.'),
  numHeads: z.int().positive().describe('Number of heads N.'),
  dimPerHead: z.int().positive().describe('Depth of a head H.'),
  useBias: z.boolean().default(true).describe('Whether there is a bias.'),
  explicitFanInFanOutAxes: z
    .boolean()
    .default(false)
    .describe('Whether initialisers count D and N H as the fans; else N D and N H, as Pax does by default.'),
};

/** x w + b with w [D, N, H]: from model depth D to N heads of depth H, or back for an output projection. */
export class AttentionProjection extends BaseLayer.with({
  ...projectionFields,
  isOutputProjection: z.boolean().default(false).describe('From heads to model depth, instead of to heads.'),
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { inputDim, numHeads, dimPerHead, useBias, isOutputProjection, explicitFanInFanOutAxes } = this.hp;
    const axes: Pick<WeightHParams, 'fanInAxes' | 'fanOutAxes'> = isOutputProjection
      ? { fanInAxes: [1, 2], fanOutAxes: [0] }
      : { fanInAxes: [0], fanOutAxes: [1, 2] };
    this.createVariable('w', {
      shape: [inputDim, numHeads, dimPerHead],
      contracting: axes.fanInAxes,
      ...(explicitFanInFanOutAxes ? axes : {}),
    });
    if (!useBias) return;
    this.createVariable('b', {
      shape: isOutputProjection ? [inputDim] : [numHeads, dimPerHead],
      init: constantInit(0),
    });
  }

  /** [..., D] to [..., N, H], or [..., N, H] to [..., D] for an output projection. */
  fprop(inputs: Tensor): Tensor {
    const { numHeads, dimPerHead, useBias, isOutputProjection } = this.hp;
    const heads = numHeads * dimPerHead;
    if (isOutputProjection) {
      const outputs = this.product(tf.reshape(inputs, [...inputs.shape.slice(0, -2), heads]));
      return useBias ? tf.add(outputs, this.theta.b) : outputs;
    }
    const outputs = this.product(inputs);
    const biased = useBias ? tf.add(outputs, tf.reshape(this.theta.b, [heads])) : outputs;
    return splitHeads(biased, numHeads);
  }

  /** Vectors times the weights: [..., D] to [..., N H], or back for an output projection. */
  protected product(vectors: Tensor): Tensor {
    const { inputDim, numHeads, dimPerHead, isOutputProjection } = this.hp;
    const w = tf.reshape(this.theta.w, [inputDim, numHeads * dimPerHead]);
    return tf.matMul(this.factors(vectors, 'w'), w, false, isOutputProjection);
  }
}

/** [..., N H] to [..., N, H]. */
export const splitHeads = (x: Tensor, numHeads: number): Tensor =>
  tf.reshape(x, [...x.shape.slice(0, -1), numHeads, x.shape.at(-1)! / numHeads]);

/** Query, key and value projections in one variable w [3, D, N, H]; self-attention only. */
export class CombinedQKVProjectionLayer extends BaseLayer.with(projectionFields) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { inputDim, numHeads, dimPerHead, useBias, explicitFanInFanOutAxes } = this.hp;
    this.createVariable('w', {
      shape: [3, inputDim, numHeads, dimPerHead],
      contracting: [1],
      ...(explicitFanInFanOutAxes ? { fanInAxes: [1], fanOutAxes: [2, 3] } : {}),
    });
    if (useBias) this.createVariable('b', { shape: [3, numHeads, dimPerHead], init: constantInit(0) });
  }

  /** [..., D] to query, key and value, [..., N, H] each. */
  fprop(inputs: Tensor): [Tensor, Tensor, Tensor] {
    const { inputDim, numHeads, dimPerHead, useBias } = this.hp;
    const heads = numHeads * dimPerHead;
    const w = tf.split(this.theta.w, 3, 0).map((part) => tf.reshape(part, [inputDim, heads]));
    const b = useBias ? tf.split(tf.reshape(this.theta.b, [3, heads]), 3, 0) : null;
    const project = (part: number): Tensor => {
      const outputs = this.product(inputs, w[part]!, part);
      return splitHeads(b ? tf.add(outputs, b[part]!) : outputs, numHeads);
    };
    return [project(0), project(1), project(2)];
  }

  /** [..., D] times the weights [D, N H] of a part, 0 to 2: [..., N H]. */
  protected product(inputs: Tensor, w: Tensor, _part: number): Tensor {
    return tf.matMul(this.factors(inputs, 'w'), w);
  }
}

/** Multiplies queries by softplus(p) / softplus(0) / sqrt(dim) with p [dim] trained from 0. */
export class PerDimScale extends BaseLayer.with({
  dim: z.int().positive().describe('Depth of a head.'),
}) {
  declare readonly theta: Theta<'per_dim_scale'>;

  protected override setup(): void {
    this.createVariable('per_dim_scale', { shape: [this.hp.dim], init: constantInit(0) });
  }

  /** [..., dim] to the same shape. */
  fprop(inputs: Tensor): Tensor {
    const factor = tf.mul(softplus(this.theta.per_dim_scale), 1 / (Math.LN2 * Math.sqrt(this.hp.dim)));
    return tf.mul(inputs, factor);
  }
}
