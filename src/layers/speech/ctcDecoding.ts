/** @file Greedy decoding of connectionist temporal classification: the likeliest symbol of each frame (Graves et al., 2006). */
import { type Tensor, tf } from '../../compiler/index.js';

/**
 * The symbols that begin at each frame: the likeliest ones, of which runs are one symbol and blanks none.
 *
 * @param logits [B, T, K].
 * @param paddings [B, T], 1 for frames that are padding, which begin no symbol.
 * @returns int32 [B, T], `blankId` where none begins.
 */
export function ctcGreedyIds(logits: Tensor, paddings: Tensor, blankId = 0): Tensor {
  const [batch, time] = logits.shape as [number, number, number];
  const blank = tf.scalar(blankId, 'int32');
  const ids = tf.where(tf.less(paddings, 0.5), tf.cast(tf.argMax(logits, -1), 'int32'), blank) as Tensor;
  const before = tf.slice(tf.concat([tf.fill([batch, 1], blankId, 'int32'), ids], 1), [0, 0], [batch, time]);
  return tf.where(tf.notEqual(ids, before), ids, blank) as Tensor;
}
