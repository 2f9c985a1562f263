/** @file Places of layers in a model: handed from `createChild` to the constructor of the layer that `build` makes. */

/** A layer's place. */
export interface Placement<L> {
  /** The layer that creates it; null for the root. */
  readonly parent: L | null;
  readonly path: string;
}

/** The place of the layer that is about to be built. */
let next: Placement<unknown> | undefined;

/** Runs `build`; the first layer that it constructs takes the place. */
export function withPlacement<L, T>(placement: Placement<L>, build: () => T): T {
  next = placement;
  try {
    return build();
  } finally {
    // A layer that was built before does not take it.
    next = undefined;
  }
}

/** The place of the layer under construction; that of a root where none was handed over. */
export function takePlacement<L>(): Placement<L> {
  const placement = next ?? { parent: null, path: '' };
  next = undefined;
  return placement as Placement<L>;
}
