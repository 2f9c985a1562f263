/** @file Layers that draw random numbers in training. */
import { z } from 'zod';
import { ops, type Tensor } from '../compiler/index.js';
import { BaseLayer } from './baseLayer.js';

/** Keeps each element with probability keepProb, divided by keepProb; the identity in evaluation. */
export class Dropout extends BaseLayer.with({
  keepProb: z.number().gt(0).max(1).default(1).describe('Probability that an element is kept.'),
}) {
  /** Any shape to the same shape. Draws a key only where something can be dropped. */
  fprop(inputs: Tensor): Tensor {
    const { keepProb } = this.hp;
    if (keepProb === 1 || this.doEval) return inputs;
    return ops.dropout(inputs, this.nextPrngKey(), keepProb);
  }
}
