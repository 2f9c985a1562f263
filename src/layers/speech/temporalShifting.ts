/** @file Random shifts of audio signals in time (praxis/layers/augmentations.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';

/** Signals, and which of their samples are padding. */
export interface ShiftedSignals {
  /** Of the shape of the inputs. */
  readonly features: Tensor;
  /** [B, T], 1 for padding; absent where the inputs have none. */
  readonly paddings?: Tensor | undefined;
}

/**
 * Moves each signal by a number of samples of its own, drawn evenly from -range to range; what comes in at an end is 0, and
 * padding. The identity in evaluation.
 */
export class TemporalShifting extends BaseLayer.with({
  shiftRangeMs: z.number().nonnegative().default(0).describe('Largest shift either way, in milliseconds.'),
  sampleRate: z.number().positive().default(16000).describe('Samples of a second.'),
  axis: z.int().positive().default(1).describe('The axis of time.'),
}) {
  /**
   * @param features [B, ...], of T samples along `axis`.
   * @param paddings [B, T], 1 for padding.
   * @throws LayerError for signals that a shift could move out of sight, and paddings of another shape
   */
  fprop(features: Tensor, paddings?: Tensor): ShiftedSignals {
    const { shiftRangeMs, sampleRate, axis } = this.hp;
    const [batch, time] = [features.shape[0]!, features.shape[axis]];
    if (time === undefined)
      throw this.error(`axis ${axis}: the features [${features.shape.join(', ')}] have no such axis.`);
    if (paddings) unpadded(this, paddings, [batch, time]);
    const range = Math.round((sampleRate * shiftRangeMs) / 1000);
    if (this.doEval || range === 0) return { features, paddings };
    if (range >= time)
      throw this.error(
        `shiftRangeMs ${shiftRangeMs} is ${range} samples: expected fewer than the ${time} of the signals.`,
      );
    const shift = ops.randomInt(this.nextPrngKey(), [batch, 1], -range, range + 1);
    const source = tf.add(shift, tf.range(0, time, 1, 'int32')) as Tensor;
    const order = features.shape.map((_, i) => (i === axis ? 1 : i > 0 && i < axis ? i + 1 : i));
    const moved = taken(tf.transpose(features, inverse(order)), source);
    if (!paddings) return { features: tf.transpose(moved, order) };
    const kept = taken(tf.sub(1, tf.broadcastTo(paddings, [batch, time])), source);
    return { features: tf.transpose(moved, order), paddings: tf.sub(1, kept) };
  }
}

/** The order of axes that undoes `order`. */
const inverse = (order: readonly number[]): number[] => order.map((_, i) => order.indexOf(i));

/** x [B, T, ...] at the places `source` int32 [B, T] of each row; 0 outside. */
function taken(x: Tensor, source: Tensor): Tensor {
  const [batch, time, ...rest] = x.shape as [number, number, ...number[]];
  const depth = rest.reduce((a, b) => a * b, 1);
  const last = tf.scalar(time - 1, 'int32');
  const inside = tf.maximum(tf.minimum(source, last), tf.scalar(0, 'int32'));
  const firstRows = tf.mul(tf.range(0, batch, 1, 'int32'), tf.scalar(time, 'int32'));
  const rows = tf.add(inside, tf.reshape(firstRows, [batch, 1])) as Tensor;
  const values = ops.embeddingLookup(tf.reshape(x, [batch * time, depth]), rows);
  return tf.reshape(selected(values, tf.expandDims(tf.equal(inside, source), -1)), [batch, time, ...rest]);
}
