/** @file Layers that draw random numbers in training. */
import { z } from 'zod';
import { ops, type Tensor } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';

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
