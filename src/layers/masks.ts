/** @file Additive attention masks: 0 where a query may see a key, a large negative number elsewhere. */
import { type Tensor, tf } from '../compiler/index.js';

/** Large enough to vanish after softmax; finite, so that a row that sees nothing has no NaN. */
const MASKED = -1e9;

/** paddings [B, S], 1 for padding: a mask [B, 1, 1, S] that hides padding. */
export function paddingMask(paddings: Tensor): Tensor {
  const [batch, length] = paddings.shape as [number, number];
  return tf.reshape(tf.mul(paddings, MASKED), [batch, 1, 1, length]);
}

/** segmentIds int32 [B, T]: a mask [B, 1, T, T] that hides other segments of a packed row. */
export function segmentMask(segmentIds: Tensor): Tensor {
  const [batch, length] = segmentIds.shape as [number, number];
  const queries = tf.reshape(segmentIds, [batch, 1, length, 1]);
  const keys = tf.reshape(segmentIds, [batch, 1, 1, length]);
  return tf.mul(tf.cast(tf.notEqual(queries, keys), 'float32'), MASKED);
}
