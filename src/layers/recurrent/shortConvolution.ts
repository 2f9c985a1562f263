/** @file Short causal convolutions over time, each channel for itself, as recurrent mixers have in front. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { column, ofTokens, type Steps } from './recurrence.js';

/**
 * `y[t] = b + Σ_k w[k] x[t - kernelSize + 1 + k]` for each channel, over the tokens of one sequence; padding counts as 0. Its
 * state is the last kernelSize - 1 inputs.
 */
export class ShortConvolution extends BaseLayer.with({
  dim: z.int().positive().describe('Channels.'),
  kernelSize: z
    .int()
    .min(2)
    .default(4)
    .describe('Tokens that an output reads, the last of which is its own.'),
  bias: z.boolean().default(true).describe('Whether a bias is added.'),
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { dim, kernelSize, bias } = this.hp;
    this.createVariable('w', { shape: [kernelSize, dim], fanInAxes: [0], fanOutAxes: [0] });
    if (bias) this.createVariable('b', { shape: [dim], init: constantInit(0) });
  }

  /** Shape of the state of one row. */
  get stateShape(): readonly number[] {
    return [this.hp.kernelSize - 1, this.hp.dim];
  }

  /**
   * @param inputs [B, T, dim].
   * @param state [B, kernelSize - 1, dim]: the inputs before.
   * @returns outputs [B, T, dim], and the state after the last token.
   */
  fprop(inputs: Tensor, state: Tensor, steps: Steps): readonly [outputs: Tensor, state: Tensor] {
    const { dim, kernelSize, bias } = this.hp;
    const [batch, time] = inputs.shape as [number, number];
    const before = kernelSize - 1;
    const all = tf.concat([state, ofTokens(inputs, steps)], 1);
    const sequence = steps.starts && tf.cumsum(tf.cast(steps.starts, 'int32'), 1);
    const sequences = sequence && tf.concat([tf.zeros([batch, before], 'int32'), sequence], 1);
    const weights = tf.unstack(this.theta.w, 0);
    const terms = weights.map((w, k) => {
      const x = tf.slice(all, [0, k, 0], [batch, time, dim]);
      const isOwn =
        sequences && k < before && tf.equal(sequence!, tf.slice(sequences, [0, k], [batch, time]));
      return tf.mul(isOwn ? tf.where(column(isOwn, 3), x, tf.scalar(0)) : x, w);
    });
    const outputs = terms.reduce((a, b) => tf.add(a, b));
    return [bias ? tf.add(outputs, this.theta.b) : outputs, this.#lastInputs(all, steps)];
  }

  /** The inputs before the next token: those up to the last token among `all` [B, kernelSize - 1 + T, dim]. */
  #lastInputs(all: Tensor, { tokens }: Steps): Tensor {
    const [batch, places, dim] = all.shape as [number, number, number];
    const before = this.hp.kernelSize - 1;
    const time = places - before;
    if (!tokens) return tf.slice(all, [0, time, 0], [batch, before, dim]);
    const ends = tf.mul(tf.cast(tokens, 'int32'), tf.range(1, time + 1, 1, 'int32'));
    const rows = tf.mul(tf.range(0, batch, 1, 'int32'), tf.scalar(places, 'int32'));
    const first = tf.add(tf.max(ends, 1), rows);
    const index = tf.add(tf.reshape(first, [batch, 1]), tf.range(0, before, 1, 'int32'));
    return ops.embeddingLookup(tf.reshape(all, [batch * places, dim]), index);
  }
}
