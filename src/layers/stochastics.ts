/** @file Layers that draw random numbers in training. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { selected } from './core/masks.js';

/** Probability of dropping `what`; 0 by default, never 1. */
export const dropoutField = (what: string) =>
  z.number().min(0).lt(1).default(0).describe(`Probability that ${what} is dropped.`);

/**
 * Keeps each element with probability keepProb, scaled by 1 / keepProb; the identity in evaluation. Elements that share a number
 * of `noiseShape` are kept or dropped together.
 */
export class Dropout extends BaseLayer.with({
  keepProb: z.number().gt(0).max(1).default(1).describe('Probability that an element is kept.'),
  noiseShape: z
    .array(z.int().positive())
    .nullable()
    .default(null)
    .describe("Shape of the draws, which broadcasts to that of the inputs; null: the inputs'."),
  noiseShapeBroadcastDims: z
    .array(z.int())
    .default([])
    .describe('Axes along which one draw holds for all elements; those below 0 count from the last.'),
  dropoutAtEval: z.boolean().default(false).describe('Whether evaluation drops elements too.'),
}) {
  /** Any shape to the same shape. Draws a key only if keepProb is below 1. @throws LayerError for axes that inputs lack */
  fprop(inputs: Tensor): Tensor {
    if (!this.#drops) return inputs;
    const { keepProb } = this.hp;
    const shape = this.#noiseShape(inputs);
    if (!shape) return ops.dropout(inputs, this.nextPrngKey(), keepProb);
    const kept = ops.bernoulli(this.nextPrngKey(), keepProb, shape);
    return tf.where(kept, tf.div(inputs, keepProb), tf.scalar(0));
  }

  /**
   * The same of an attention's weights, in the form that its kernel draws tile by tile; a subclass with another `fprop`, and
   * draws for several elements, get all of them.
   */
  ofWeights(): ops.AttentionOptions['dropout'] {
    const { keepProb, noiseShape, noiseShapeBroadcastDims } = this.hp;
    if (this.fprop !== Dropout.prototype.fprop || noiseShape || noiseShapeBroadcastDims.length > 0)
      return (weights) => this.fprop(weights);
    return this.#drops ? { key: this.nextPrngKey(), keepProb } : undefined;
  }

  get #drops(): boolean {
    return this.hp.keepProb < 1 && (!this.doEval || this.hp.dropoutAtEval);
  }

  /** Shape of the draws; undefined for one of each element. */
  #noiseShape({ shape, rank }: Tensor): number[] | undefined {
    const { noiseShape, noiseShapeBroadcastDims: axes } = this.hp;
    if (!noiseShape && axes.length === 0) return undefined;
    const noise = [...(noiseShape ?? shape)];
    const offset = rank - noise.length;
    if (offset < 0 || noise.some((size, i) => size !== 1 && size !== shape[offset + i]))
      throw this.error(
        `noiseShape [${noise.join(', ')}] does not broadcast to the inputs [${shape.join(', ')}].`,
      );
    for (const axis of axes) {
      if (axis >= noise.length || axis < -noise.length)
        throw this.error(
          `noiseShapeBroadcastDims: expected axes of draws [${noise.join(', ')}], from ${-noise.length} to ` +
            `${noise.length - 1}, got ${axis}.`,
        );
      noise[axis < 0 ? axis + noise.length : axis] = 1;
    }
    return noise;
  }
}

/**
 * inputs + residualWeight · residual, where in training each example of the batch keeps its residual with probability
 * survivalProb, over which what is kept is divided (stochastic depth, Huang et al., 2016).
 */
export class StochasticResidual extends BaseLayer.with({
  residualWeight: z.number().default(1).describe('Factor on the residual.'),
  survivalProb: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe('Probability that an example keeps its residual.'),
}) {
  /** Two tensors [B, ...] of one shape to that shape. Draws a key only if survivalProb is below 1. */
  fprop(inputs: Tensor, residual: Tensor): Tensor {
    const { residualWeight } = this.hp;
    return tf.add(inputs, tf.mul(this.#surviving(residual), residualWeight));
  }

  #surviving(residual: Tensor): Tensor {
    const { survivalProb } = this.hp;
    if (survivalProb === 1 || this.doEval) return residual;
    const [rows, ...rest] = residual.shape;
    const drawn = ops.dropout(tf.ones([rows!, ...rest.map(() => 1)]), this.nextPrngKey(), survivalProb);
    return selected(tf.div(residual, survivalProb), tf.greater(drawn, 0));
  }
}
