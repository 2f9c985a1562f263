/** @file Normalisation over groups of the last dimension's elements (praxis/layers/normalizations.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { selected, unpadded } from './core/masks.js';
import { constantInit } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';
import { BaseNormalization } from './normalizations.js';

/**
 * (x - mean) / sqrt(variance + epsilon) * (1 + gamma) + beta, with the mean and variance of a group: neighbouring elements
 * of the last dimension, at all positions of one example (Wu and He, 2018). One group is a layer norm over the whole
 * example, `dim` groups are an instance norm.
 */
export class GroupNorm extends BaseNormalization.with({
  numGroups: z
    .int()
    .positive()
    .default(32)
    .describe('Number of groups; fewer where minGroupSize asks for it.'),
  minGroupSize: z
    .int()
    .positive()
    .default(1)
    .describe('Least number of elements of the last dimension in a group.'),
  cumulative: z
    .boolean()
    .default(false)
    .describe(
      'Whether only a time itself and those before it count; time is the dimension behind the batch.',
    ),
  epsilon: z.number().positive().default(1e-3).describe('Added to the variance.'),
  setPaddedOutputToZero: z.boolean().default(true).describe('Whether outputs are 0 where there is padding.'),
  useScale: z.boolean().default(true).describe('Whether there is a gamma.'),
  useBias: z.boolean().default(true).describe('Whether there is a beta.'),
}) {
  declare readonly theta: Theta<'gamma' | 'beta'>;
  #groupSize!: number;

  protected override setup(): void {
    const { dim, numGroups, minGroupSize, useScale, useBias } = this.hp;
    // A depth below the number of groups has a group for each minGroupSize elements.
    const divisors = { minGroupSize, ...(dim >= numGroups && { numGroups }) };
    for (const [name, size] of Object.entries(divisors))
      if (dim % size !== 0) throw this.error(`${name} ${size} has to divide dim ${dim}.`);
    this.#groupSize = Math.max(Math.floor(dim / numGroups), minGroupSize);
    const collections = [WeightCollection.SKIP_LP_REGULARIZATION];
    if (useBias) this.createVariable('beta', { shape: [dim], init: constantInit(0), collections });
    if (useScale) this.createVariable('gamma', { shape: [dim], init: constantInit(0), collections });
  }

  /**
   * [batch, ..., dim] to the same shape.
   *
   * @param paddings [batch, time], 1 for padding, where time is the dimension behind the batch: it does not count. Either
   *   size may be 1.
   * @throws LayerError for paddings of another shape
   */
  override fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const { dim, epsilon, useScale, useBias, setPaddedOutputToZero } = this.hp;
    const [batch = 1, ...positions] = inputs.shape.slice(0, -1);
    const [time = 1, ...rest] = positions;
    const each = rest.reduce((count, size) => count * size, 1);
    const groups = tf.reshape(inputs, [batch, time, each, dim / this.#groupSize, this.#groupSize]) as Tensor;
    const kept = paddings && tf.broadcastTo(unpadded(this, paddings, [batch, time]), [batch, time]);
    const keep = kept && (tf.reshape(kept, [batch, time, 1, 1, 1]) as Tensor);
    const x = keep ? selected(groups, keep) : groups;
    const mean = this.#meanOfGroups(x, keep);
    const centered = tf.sub(x, mean);
    const variance = this.#meanOfGroups(tf.square(centered), keep);
    let outputs = tf.reshape(tf.mul(centered, tf.rsqrt(tf.add(variance, epsilon))), inputs.shape) as Tensor;
    if (useScale) outputs = tf.mul(outputs, tf.add(this.theta.gamma, 1));
    if (useBias) outputs = tf.add(outputs, this.theta.beta);
    if (!kept || !setPaddedOutputToZero) return outputs;
    return selected(outputs, tf.reshape(kept, [batch, time, ...rest.map(() => 1), 1]));
  }

  /**
   * Mean of each group over the positions and elements that count: all of them, or up to the same time.
   *
   * @param x [batch, time, positions, groups, size].
   * @param keep bool [batch, time, 1, 1, 1], false for what does not count; absent: all counts.
   */
  #meanOfGroups(x: Tensor, keep: Tensor | undefined): Tensor {
    const overTime = (sums: Tensor): Tensor =>
      this.hp.cumulative ? tf.cumsum(sums, 1) : tf.sum(sums, 1, true);
    const counts = keep ? tf.cast(keep, 'float32') : tf.ones([1, x.shape[1]!, 1, 1, 1]);
    const sums = overTime(tf.sum(keep ? selected(x, keep) : x, [2, 4], true));
    const counted = tf.mul(overTime(counts), x.shape[2]! * x.shape[4]!);
    return tf.div(sums, tf.maximum(counted, 1));
  }
}
