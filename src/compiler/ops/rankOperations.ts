/** @file Collectives of traced programs, for optimizers and the like: reductions, gathers, a rank's own part. They have no gradients. */
import { CompilerError } from '../program/tensors.js';
import { type Group, membersOf } from '../rules/collectiveRules.js';
import type * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';

function collective(
  op: string,
  x: tf.Tensor,
  { mesh, axes }: Group,
  attrs: Readonly<Record<string, string | number>>,
): tf.Tensor {
  if (membersOf({ mesh, axes }) === 1) return x;
  if (!isTracing())
    throw new CompilerError(`${op}: ranks run compiled programs, and this is eager execution.`);
  return recordOp(op, [x], { mesh: [...mesh], axes: [...axes], ...attrs })[0]!;
}

/** The reduction of a tensor over the members of a group, for all of them. @param x float32 or int32, any shape */
export const allReduce = (x: tf.Tensor, group: Group, reduction: 'sum' | 'max' | 'min' = 'sum'): tf.Tensor =>
  collective('AllReduce', x, group, { reduction });

/** The parts of all members along a dimension, in their order. */
export const allGather = (x: tf.Tensor, group: Group, dim: number): tf.Tensor =>
  collective('AllGather', x, group, { dim });

/** This member's part along a dimension of what all members have. */
export const ownPart = (x: tf.Tensor, group: Group, dim: number): tf.Tensor =>
  collective('OwnPart', x, group, { dim });
