/** @file Trained keys and values that stand in front of those of a sequence (prefix tuning). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import type { Theta } from '../core/weights.js';
import { type Visibility, withLeadingKeys, withLeadingZeros } from './visibility.js';

/** Keys and values [B, S, N, H] that queries attend to, and what they see of them. */
interface Attended {
  readonly key: Tensor;
  readonly value: Tensor;
  readonly seen: Visibility;
  /** Added to the logits, [.., T, S]. */
  readonly bias?: Tensor | undefined;
}

/**
 * Keys and values [P, N, H], which all queries see beside those of the sequence: in padded and packed rows, behind a window
 * and in a decode. Neither rotated nor biased by position (Li and Liang, 2021, without their reparametrisation).
 */
export class KeyValuePrefix extends BaseLayer.with({
  prefixLength: z.int().positive().default(8).describe('Number P of keys.'),
  numHeads: z.int().positive().describe('Heads of keys and values.'),
  dimPerHead: z.int().positive().describe('Depth of a head.'),
}) {
  declare readonly theta: Theta<'key' | 'value'>;

  protected override setup(): void {
    const { prefixLength, numHeads, dimPerHead } = this.hp;
    for (const name of ['key', 'value'])
      this.createVariable(name, { shape: [prefixLength, numHeads, dimPerHead] });
  }

  /** Those of the sequence with the prefix in front, for `queries` queries. Heads may be repeated for groups of queries. */
  fprop({ key, value, seen, bias }: Attended, queries: number): Attended {
    const count = this.hp.prefixLength;
    return {
      key: tf.concat([this.#repeated(this.theta.key, key), key], 1),
      value: tf.concat([this.#repeated(this.theta.value, value), value], 1),
      seen: withLeadingKeys(seen, count, { queries, keys: key.shape[1]! }),
      bias: bias && withLeadingZeros(bias, count),
    };
  }

  /** The prefix for each row and head of `like`. */
  #repeated(prefix: Tensor, like: Tensor): Tensor {
    const { prefixLength, numHeads, dimPerHead } = this.hp;
    const [batch, , heads] = like.shape as [number, number, number];
    const groups = tf.reshape(prefix, [1, prefixLength * numHeads, 1, dimPerHead]);
    const rows = tf.tile(groups, [batch, 1, heads / numHeads, 1]);
    return tf.reshape(rows, [batch, prefixLength, heads, dimPerHead]);
  }
}
