/** @file The causal depthwise convolution of queries, keys and values (praxis/layers/attentions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import type { DecodeStateSpec } from '../core/context.js';
import { selected } from '../core/masks.js';
import type { StepArgs } from '../core/mixer.js';
import { constantInit } from '../core/weightInit.js';
import { taken } from './caches.js';
import { stepsFrom } from './positions.js';

/**
 * y_t = sum over i < kernelSize of w_i x_(t-i), for each element of the trailing axes (Primer, So et al., 2021). Nothing
 * before position 0 of a sequence counts. A decode keeps the last kernelSize - 1 inputs.
 */
export class CausalDepthwiseConv1D extends BaseLayer.with({
  kernelSize: z.int().positive().default(3).describe('Positions that an output sees, its own among them.'),
  hiddenDims: z.array(z.int().positive()).min(1).describe('Sizes of the axes behind time, such as [N, H].'),
}) {
  protected override setup(): void {
    const { kernelSize, hiddenDims } = this.hp;
    for (let i = 0; i < kernelSize; i++)
      this.createVariable(`dconv_${i}`, {
        shape: hiddenDims,
        init: constantInit(i === 0 ? 0.5 : 0.5 / kernelSize),
      });
  }

  /**
   * @param inputs [B, T, ...hiddenDims].
   * @param position int32 [B, T] or [1, T]: positions within sequences, as of a packed row; 0 to T - 1 where absent.
   * @param paddings [B, T], 1 for padding, which counts as 0.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, position?: Tensor, paddings?: Tensor): Tensor {
    const axes = inputs.shape.slice(2).map(() => 1);
    const isThere = paddings && tf.reshape(tf.less(paddings, 0.5), [...paddings.shape, ...axes]);
    const x = isThere ? selected(inputs, isThere) : inputs;
    const around = x.shape.map((_, axis): [number, number] => [axis === 1 ? this.#kept : 0, 0]);
    return this.#convolve(tf.pad(x, around), position);
  }

  override decodeStateSpecs(batchSize: number): Record<string, DecodeStateSpec> {
    return { inputs: { shape: [batchSize, this.#kept, ...this.hp.hiddenDims], dtype: 'float32' } };
  }

  /** The next T inputs [B, T, ...hiddenDims]. */
  extendStep(inputs: Tensor, { timeStep, length }: StepArgs): Tensor {
    const steps = inputs.shape[1]!;
    const all = tf.concat([this.getDecodeState('inputs'), inputs], 1);
    const first = stepsFrom(length ?? tf.scalar(steps, 'int32'), this.#kept);
    if (this.#kept > 0) this.updateDecodeState('inputs', taken(all, first));
    return this.#convolve(all, stepsFrom(timeStep, steps));
  }

  get #kept(): number {
    return this.hp.kernelSize - 1;
  }

  /** The outputs of the last inputs of [B, kept + T, ...]. */
  #convolve(all: Tensor, position: Tensor | undefined): Tensor {
    const [batch, length, ...dims] = all.shape as [number, number, ...number[]];
    const steps = length - this.#kept;
    const terms = Array.from({ length: this.hp.kernelSize }, (_, i) => {
      const start = [0, this.#kept - i, ...dims.map(() => 0)];
      const term = tf.mul(tf.slice(all, start, [batch, steps, ...dims]), this.theta[`dconv_${i}`]!);
      if (!position || i === 0) return term;
      const isInside = tf.greaterEqual(position, tf.scalar(i, 'int32'));
      return selected(term, tf.reshape(isInside, [...position.shape, ...dims.map(() => 1)]));
    });
    return terms.reduce((sum, term) => tf.add(sum, term));
  }
}
