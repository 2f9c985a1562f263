/** @file ParallelTransformer: attention and feed-forward of the same input, side by side. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopyWith } from '../../hparams/index.js';
import { IdentityNorm } from '../normalizations.js';
import type { TransformerFeedForward } from './feedForwards.js';
import { type Attends, Transformer } from './transformers.js';

/**
 * x + attention(norm(x)) + feedForward(norm(x)), in place of one behind the other. With one norm for both it is the block of
 * GPT-J (Wang and Komatsuzaki, 2021) and PaLM (Chowdhery et al., 2022, section 2), with two that of GPT-NeoX (Black et al.,
 * 2022). A cross-attention is a third branch.
 */
export class ParallelTransformer extends Transformer.with({
  useSharedNorm: z
    .boolean()
    .default(true)
    .describe("Whether the feed-forward layer has the attention's normed input, and no norm of its own."),
}) {
  protected override setup(): void {
    if (this.hp.useSharedNorm && this.hp.normPolicy !== 'pre')
      throw this.error(`useSharedNorm is set, and normPolicy is '${this.hp.normPolicy}': expected 'pre'.`);
    super.setup();
  }

  /** Without its own connection: the block adds all branches to one input. */
  protected override feedForwardTpl(): Config<TransformerFeedForward> {
    const template = deepCopyWith(super.feedForwardTpl(), { addSkipConnection: false });
    return this.hp.useSharedNorm ? deepCopyWith(template, { lnTpl: IdentityNorm.config() }) : template;
  }

  protected override subLayers(inputs: Tensor, { self, cross, paddings }: Attends): Tensor {
    const normed = this.hp.useSharedNorm ? this.norms.before(inputs) : inputs;
    const branches = [this.feedForward.fprop(normed, paddings)];
    if (cross) branches.push(tf.sub(this.residual(inputs, cross, this.crossNorms), inputs));
    return tf.addN([this.residual(inputs, self), ...branches]);
  }
}
