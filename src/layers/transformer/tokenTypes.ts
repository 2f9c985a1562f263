/** @file TokenTypeEmbedding: types of tokens, and the norm of the embeddings, as BERT has them. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import type { Theta } from '../core/weights.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';

/**
 * norm(x + the embedding of each token's type): the last step of BERT's input (Devlin et al., 2018, figure 2). Types tell the two
 * texts of a pair apart.
 */
export class TokenTypeEmbedding extends BaseLayer.with({
  embeddingDims: z.int().positive().describe('Depth of an embedding.'),
  numTypes: z.int().positive().default(2).describe('Rows of the table.'),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm of the sum; null: none.'),
}) {
  declare readonly theta: Theta<'emb_var'>;
  #norm: BaseNormalization | null = null;

  protected override setup(): void {
    const { numTypes, embeddingDims, lnTpl } = this.hp;
    this.createVariable('emb_var', { shape: [numTypes, embeddingDims] });
    if (lnTpl) this.#norm = this.createChild('layer_norm', lnTpl, { dim: embeddingDims });
  }

  /**
   * @param x embeddings of tokens with their positions, [B, T, embeddingDims].
   * @param types int32 [B, T]; 0 where absent.
   * @returns [B, T, embeddingDims].
   */
  fprop(x: Tensor, types?: Tensor): Tensor {
    const table = this.theta.emb_var;
    const ofTypes = types ? ops.embeddingLookup(table, types) : tf.slice(table, 0, 1);
    const sum = tf.add(x, ofTypes) as Tensor;
    return this.#norm ? this.#norm.fprop(sum) : sum;
  }
}
