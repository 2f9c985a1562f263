/** @file Checkpointed regions: which recorded nodes belong to the forward and the backward pass of a checkpoint. */

/**
 * What a checkpointed function keeps for its gradient: 'nothing' but its inputs, 'everything', results of matrix
 * products and convolutions ('dots'), those of products of two matrices without batch axes of both
 * ('dotsWithNoBatchDims'), or the tensors with these names (`checkpointName`).
 */
export type CheckpointPolicy = 'nothing' | 'everything' | 'dots' | 'dotsWithNoBatchDims' | readonly string[];

/** One call of a checkpointed function. */
export interface Region {
  readonly policy: CheckpointPolicy;
  /** The region whose function made the call. */
  readonly parent: Region | null;
}

/** A node's place in a region: in its forward pass, or in its gradient. */
export interface Mark {
  readonly region: Region;
  readonly isGradient: boolean;
}

let current: Mark | null = null;

/** The mark of nodes being recorded; null outside of checkpoints. */
export const currentMark = (): Mark | null => current;

/** Runs `f` with nodes marked so. */
export function withMark<T>(mark: Mark | null, f: () => T): T {
  const outer = current;
  current = mark;
  try {
    return f();
  } finally {
    current = outer;
  }
}

/** Whether a region is `outer`, or within it. */
export function isWithinRegion(region: Region, outer: Region): boolean {
  for (let each: Region | null = region; each !== null; each = each.parent) if (each === outer) return true;
  return false;
}
