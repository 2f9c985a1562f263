/** @file MaskedLmDataAugmenter: tokens to be predicted, as in BERT (praxis/layers/augmentations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { unpadded } from './core/masks.js';

const share = (of: string) => z.number().min(0).max(1).describe(`Probability that a token ${of}.`);

/** Replaces some tokens by a mask token, some by random ones, and chooses some that stay (Devlin et al., 2018). */
export class MaskedLmDataAugmenter extends BaseLayer.with({
  vocabSize: z.int().positive().describe('Size of the vocabulary that random tokens are from.'),
  maskProb: share('becomes the mask token').default(0.12),
  randomProb: share('becomes a random one').default(0.015),
  sameProb: share('stays, and is to be predicted').default(0.015),
  maskTokenId: z.int().nonnegative().describe('Id of the mask token.'),
}) {
  protected override setup(): void {
    const { maskProb, randomProb, sameProb } = this.hp;
    const total = maskProb + randomProb + sameProb;
    if (!(total > 0 && total < 1))
      throw this.error(
        `maskProb + randomProb + sameProb: expected a sum between 0 and 1, got ${maskProb} + ${randomProb} + ${sameProb}.`,
      );
  }

  /**
   * Draws in evaluation too.
   *
   * @param inputs int32 [B, T].
   * @param paddings [B, T], 1 for padding, which is never chosen.
   * @returns new tokens int32 [B, T], and `mask` float32 [B, T], 1 for those to be predicted.
   */
  fprop(inputs: Tensor, paddings: Tensor): { readonly inputs: Tensor; readonly mask: Tensor } {
    const { vocabSize, maskProb, randomProb, sameProb, maskTokenId } = this.hp;
    const { shape } = inputs;
    // One draw in [0, 1) decides: mask token | random token | the same | not chosen.
    const draws = ops.randomUniform(this.nextPrngKey(), shape);
    const kept = unpadded(this, paddings, shape);
    const below = (limit: number): Tensor => tf.logicalAnd(kept, tf.less(draws, limit));
    const drawn = tf.mul(ops.randomUniform(this.nextPrngKey(), shape), vocabSize);
    const random = tf.minimum(tf.cast(tf.floor(drawn), 'int32'), tf.scalar(vocabSize - 1, 'int32'));
    const replaced = tf.where(below(maskProb + randomProb), random, inputs) as Tensor;
    return {
      inputs: tf.where(below(maskProb), tf.fill(shape, maskTokenId, 'int32'), replaced) as Tensor,
      mask: tf.cast(below(maskProb + randomProb + sameProb), 'float32'),
    };
  }
}
