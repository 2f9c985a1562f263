/** @file Layers that draw random numbers in training. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { selected } from './core/masks.js';

/** Probability of dropping `what`; 0 by default, never 1. */
export const dropoutField = (what: string) =>
  z.number().min(0).lt(1).default(0).describe(`Probability that ${what} is dropped.`);

/** Keeps each element with probability keepProb, scaled by 1 / keepProb; the identity in evaluation. */
export class Dropout extends BaseLayer.with({
  keepProb: z.number().gt(0).max(1).default(1).describe('Probability that an element is kept.'),
}) {
  /** Any shape to the same shape. Draws a key only if keepProb is below 1. */
  fprop(inputs: Tensor): Tensor {
    const { keepProb } = this.hp;
    if (keepProb === 1 || this.doEval) return inputs;
    return ops.dropout(inputs, this.nextPrngKey(), keepProb);
  }

  /**
   * The same of an attention's weights, in the form that its kernel draws tile by tile; a subclass with another `fprop` gets all
   * of them.
   */
  ofWeights(): ops.AttentionOptions['dropout'] {
    const { keepProb } = this.hp;
    if (this.fprop !== Dropout.prototype.fprop) return (weights) => this.fprop(weights);
    return keepProb === 1 || this.doEval ? undefined : { key: this.nextPrngKey(), keepProb };
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
