/** @file Table lookup with a gradient that is correct for duplicate ids. */
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';

/**
 * Selects rows of a table.
 *
 * @param table float32 [V, D].
 * @param ids int32 of any shape, each in [0, V).
 * @returns float32 [...ids.shape, D]. A row's gradient sums over all of its uses.
 */
export function embeddingLookup(table: tf.Tensor, ids: tf.Tensor): tf.Tensor {
  if (!isTracing()) return tf.gather(table, ids as tf.Tensor1D);
  const [rows, depth] = table.shape as [number, number];
  const call = tf.customGrad((x: any) => ({
    value: recordOp('GatherV2', [x, ids], { axis: 0 })[0]!,
    gradFunc: (dy: tf.Tensor) => {
      // tfjs's operation, which has a gradient.
      return tf.unsortedSegmentSum(
        tf.reshape(dy, [ids.size, depth]),
        tf.reshape(ids, [ids.size]) as tf.Tensor1D,
        rows,
      );
    },
  }));
  return call(table);
}
