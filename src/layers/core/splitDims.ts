/** @file Splits of a layer's tensors over the mesh of devices, with those that it inherits (Pax's split_dims_mapping). */
import { ops, type Sharding, type Tensor } from '../../compiler/index.js';
import type { SplitDims } from './layerFields.js';

type Mappings = 'weightSplitDimsMapping' | 'activationSplitDimsMapping';

/** The part of a layer that its splits need. */
interface Annotated {
  readonly hp: Readonly<Record<Mappings, Readonly<Record<string, SplitDims>>>>;
  readonly parent: Annotated | null;
  error(detail: string): Error;
}

/** Names under which a layer's mapping has the split of a tensor, the first that it has. */
const KEYS: Readonly<Record<Mappings, (name: string) => readonly string[]>> = {
  weightSplitDimsMapping: (name) => [name, 'wt'],
  activationSplitDimsMapping: (name) => [name],
};

/**
 * The split of a tensor of a layer: the layer's own, or that of the nearest layer above which has one of this rank; undefined
 * where none has.
 *
 * @throws Error where the layer's own is of another rank.
 */
export function splitOf(
  layer: Annotated,
  field: Mappings,
  name: string,
  rank: number,
): SplitDims | undefined {
  for (let at: Annotated | null = layer; at; at = at.parent) {
    const mapping = at.hp[field];
    const key = KEYS[field](name).find((each) => Object.hasOwn(mapping, each));
    if (key === undefined) continue;
    const dims = mapping[key]!;
    if (dims.length === rank) return dims;
    if (at === layer && key === name)
      throw layer.error(`${field}.${key} has ${dims.length} dimensions, and '${name}' has ${rank}.`);
  }
  return undefined;
}

/**
 * Numbers of the axes of a mesh that split a tensor of a layer, if anything splits it.
 *
 * @param own the split that layers say.
 */
export type ActivationSplits = (
  path: string,
  own: SplitDims | undefined,
  shape: readonly number[],
) => Sharding | undefined;

let splits: ActivationSplits | undefined;

/** Runs the synchronous function `fn`, which traces layers for several ranks: their tensors are split so. */
export function splitActivations<T>(by: ActivationSplits, fn: () => T): T {
  const outer = splits;
  splits = by;
  try {
    return fn();
  } finally {
    splits = outer;
  }
}

/** `x` itself, of which ranks hold parts where something splits it. Programs of one rank are the same without it. */
export function splitTensor(x: Tensor, path: string, own: () => SplitDims | undefined): Tensor {
  const sharding = splits?.(path, own(), x.shape);
  return sharding === undefined ? x : ops.withSharding(x, sharding);
}
