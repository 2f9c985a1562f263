/** @file Multi-query attention with Pax's variables (praxis/layers/multi_query_attention.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { GroupedQueryAttention } from './groupedQueryAttention.js';

/** x w + b with w [D, H]: to the one head of keys or of values. */
export class OneHeadedAttentionProjection extends BaseLayer.with({
  inputDim: z.int().positive().describe('Depth of the model.'),
  outputDim: z.int().positive().describe('Depth of the head.'),
  useBias: z.boolean().default(true).describe('Whether there is a bias.'),
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { inputDim, outputDim, useBias } = this.hp;
    this.createVariable('w', { shape: [inputDim, outputDim], contracting: [0] });
    if (useBias) this.createVariable('b', { shape: [outputDim], init: constantInit(0) });
  }

  /** [..., D] to [..., H]. */
  fprop(inputs: Tensor): Tensor {
    const outputs = tf.matMul(this.factors(inputs, 'w'), this.theta.w);
    return this.hp.useBias ? tf.add(outputs, this.theta.b) : outputs;
  }
}

/**
 * Grouped-query attention as Pax's class of this name has it: one head of keys and values has projections without an axis of
 * heads, and queries are scaled by a constant (Shazeer, 2019).
 */
export class MultiQueryDotProductAttention extends GroupedQueryAttention.with({
  headlessProjTpl: sub(OneHeadedAttentionProjection).describe(
    'The projection of keys and of values where numKvHeads is 1; else it is projTpl.',
  ),
  internalEnablePerDimScale: z
    .boolean()
    .default(false)
    .describe('Scale queries by a trained factor for each dimension, which Pax has not here.'),
}) {
  protected override createKeyOrValue(name: 'key' | 'value'): (vectors: Tensor) => Tensor {
    const { inputDim, headlessProjTpl } = this.hp;
    if (this.numKvHeads !== 1) return super.createKeyOrValue(name);
    const sizes = { inputDim, outputDim: this.dimPerHead, useBias: this.hasBias(name) };
    const projection = this.createChild(name, deepCopy(headlessProjTpl), sizes);
    return (vectors) => tf.expandDims(projection.fprop(vectors), -2);
  }
}
