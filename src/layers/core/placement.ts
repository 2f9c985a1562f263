/** @file Placement of layers: passed from `createChild` to the constructor of the layer that `build` makes. */

/** A layer's place. */
export interface Placement<L> {
  /** The layer that creates it; null for the root. */
  readonly parent: L | null;
  readonly path: string;
  /** Axes that layers above put before those of its variables. */
  readonly repeatPrefix: readonly number[];
  /** Whether no learner moves its variables, nor those below it. */
  readonly isFrozen: boolean;
}

/** The place of the next layer to be built. */
let next: Placement<unknown> | undefined;

/** Runs `build`; the first layer that it constructs takes the place. */
export function withPlacement<L, T>(placement: Placement<L>, build: () => T): T {
  next = placement;
  try {
    return build();
  } finally {
    // Discards the place if the layer had been built before.
    next = undefined;
  }
}

/** The place of the layer under construction, or a root's place. */
export function takePlacement<L>(): Placement<L> {
  const placement = next ?? { parent: null, path: '', repeatPrefix: [], isFrozen: false };
  next = undefined;
  return placement as Placement<L>;
}

/** What is wrong with a layer that `createChild` was to make and another place made. */
export const builtElsewhere = (path: string): string =>
  `stands at ${path} without having been made there: either an instance() field of it holds a layer, ` +
  'which is built before its owner (hold layers in sub() fields and make them with createChild), or its ' +
  'config is also built as a model of its own.';
