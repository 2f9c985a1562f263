/** @file Tensors of which ranks hold given parts: constraints for the partition of a program. */
import { CONSTRAINT } from '../rules/collectiveRules.js';
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';

/**
 * `x` itself, of which each rank of a partitioned program holds the part by these axes; its gradient too. Where a program is not
 * partitioned, it is the same without.
 *
 * @param sharding numbers of the mesh's axes that each dimension is split over.
 */
export function withSharding<T extends tf.Tensor>(x: T, sharding: readonly (readonly number[])[]): T {
  if (!isTracing()) return x;
  const attrs = { axes: sharding.flat(), counts: sharding.map(({ length }) => length) };
  const call = tf.customGrad((value: any) => ({
    value: recordOp(CONSTRAINT, [value], attrs)[0]!,
    gradFunc: (dy: tf.Tensor) => withSharding(dy, sharding),
  }));
  return call(x) as T;
}
