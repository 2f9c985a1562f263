/** @file Grouped-query attention (Ainslie et al., 2023; praxis/layers/grouped_query_attention.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { DotProductAttention } from './attentions.js';
import type { Visibility } from './visibility.js';

/**
 * Attention whose `numHeads` query heads share `numKvHeads` heads of keys and values, in consecutive groups; 1 gives
 * multi-query attention (Shazeer, 2019), `numHeads` plain attention. Key and value projections and the decode state
 * shrink by the same factor.
 *
 * @throws LayerError in `setup` if `numHeads` is not a multiple of `numKvHeads`.
 */
export class GroupedQueryAttention extends DotProductAttention.with({
  numKvHeads: z
    .int()
    .positive()
    .default(1)
    .describe('Heads of keys and values; numHeads is a multiple of it.'),
}) {
  protected override get numKvHeads(): number {
    return this.hp.numKvHeads;
  }

  protected override setup(): void {
    const { numHeads, numKvHeads } = this.hp;
    if (numHeads % numKvHeads !== 0)
      throw this.error(`numHeads ${numHeads} is not a multiple of numKvHeads ${numKvHeads}.`);
    super.setup();
  }

  /** @param query [B, T, N, H]. @param key [B, S, numKvHeads, H]. @param value as key. @returns [B, T, N, H]. */
  protected override dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    return super.dotAtten(query, this.repeat(key), this.repeat(value), seen);
  }

  /** Repeats each head for the query heads of its group: [B, S, numKvHeads, H] to [B, S, N, H]. */
  private repeat(heads: Tensor): Tensor {
    const { numHeads, numKvHeads } = this.hp;
    const [batch, keys, , depth] = heads.shape as [number, number, number, number];
    const groups = tf.reshape(heads, [batch * keys, numKvHeads, 1, depth]);
    const repeated = tf.tile(groups, [1, 1, numHeads / numKvHeads, 1]);
    return tf.reshape(repeated, [batch, keys, numHeads, depth]);
  }
}
