/** @file tfjs's tape: the operations that its engine records for gradients. */
import type * as tf from '@tensorflow/tfjs-core';

/** An operation on the tape. */
interface TapeNode {
  readonly inputs: Readonly<Record<string, tf.Tensor>>;
  readonly outputs: readonly tf.Tensor[];
  readonly saved?: readonly tf.Tensor[];
  gradient?: (dys: tf.Tensor[]) => Record<string, () => tf.Tensor>;
}

/** The part of tfjs's engine that records operations. */
export interface TapeKeeper {
  addTapeNode(
    name: string,
    inputs: TapeNode['inputs'],
    outputs: TapeNode['outputs'],
    ...rest: unknown[]
  ): void;
  gradients(...args: unknown[]): unknown;
  readonly state: { activeTape: TapeNode[]; readonly gradientDepth: number };
}
