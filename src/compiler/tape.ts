/** @file tfjs's tape: what its engine keeps of operations for their gradients. */
import type * as tf from '@tensorflow/tfjs-core';

/** What tfjs keeps of an operation that a gradient may be asked of. */
interface TapeNode {
  readonly inputs: Readonly<Record<string, tf.Tensor>>;
  readonly outputs: readonly tf.Tensor[];
  readonly saved?: readonly tf.Tensor[];
  gradient?: (dys: tf.Tensor[]) => Record<string, () => tf.Tensor>;
}

/** What of tfjs's engine keeps operations for gradients. */
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
