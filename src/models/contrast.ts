/** @file Contrast within a batch: each row is to find its own partner among those of all rows. */
import { ops, type Tensor, tf } from '../compiler/index.js';
import { isWeighed } from '../layers/index.js';

/** Logits of pairs with padding: far below all others, and finite. */
const NEVER = -1e9;

/** Of each row, [B]. */
interface Contrast {
  /** Cross entropy of the row's own partner, in nats. */
  readonly losses: Tensor;
  /** 1 where that partner has the largest logit. */
  readonly hits: Tensor;
}

/**
 * @param logits [B, B]: of each row's similarity to each partner.
 * @param weights [B]; rows of padding, which have 0, are no partners, whatever they hold.
 */
export function contrastOf(logits: Tensor, weights: Tensor): Contrast {
  const own = tf.range(0, logits.shape[0]!, 1, 'int32') as unknown as Tensor;
  const counts = isWeighed(weights);
  const isPair = tf.logicalAnd(tf.expandDims(counts, 0), tf.expandDims(counts, 1));
  const candidates = tf.where(isPair, logits, tf.scalar(NEVER)) as Tensor;
  return {
    losses: ops.softmaxCrossEntropy(candidates, own),
    hits: tf.cast(tf.equal(tf.argMax(candidates, -1), own), 'float32') as Tensor,
  };
}
