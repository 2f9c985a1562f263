/** @file Shardings: over which axes of a mesh each dimension of a tensor is split. */
import type { Value } from '../program/ir.js';
import type { Shape } from '../program/tensors.js';
import { membersOf } from '../rules/collectiveRules.js';
import type { Dims, Factors } from '../rules/factors.js';

/** Devices along each axis of a mesh. Ranks are numbered in row-major order. */
export type MeshShape = readonly number[];

/** Numbers of the axes that each dimension is split over, major first; parts are numbered in row-major order of these. */
export type Sharding = readonly (readonly number[])[];

/** The sharding of a tensor that every rank has. */
export const wholeOf = ({ length }: Shape): Sharding => Array.from({ length }, () => []);

/** Whether two lists of axes are the same. */
export const sameAxes = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((axis, i) => axis === b[i]);

export const sameSharding = (a: Sharding, b: Sharding): boolean =>
  a.every((axes, i) => sameAxes(axes, b[i]!));

/** Number of parts along axes together. */
export const waysOf = (axes: readonly number[], mesh: MeshShape): number => membersOf({ mesh, axes });

/** The shape of a rank's part. */
export const localShape = (shape: Shape, sharding: Sharding, mesh: MeshShape): number[] =>
  shape.map((size, i) => size / waysOf(sharding[i]!, mesh));

/** Axes that a number of factors are split over, by factor. */
export type Assignment = readonly (readonly number[])[];

/** The axes of factors by a sharding of their dimensions: those that split a factor evenly, up to the first that does not. */
export function factorAxes(
  sharding: Sharding,
  dims: Dims,
  { sizes }: Pick<Factors, 'sizes'>,
  mesh: MeshShape,
): Map<number, number[]> {
  const found = new Map<number, number[]>();
  sharding.forEach((axes, dim) => {
    const factors = dims[dim]!;
    let at = 0;
    let rest = sizes[factors[0]!] ?? 1;
    for (const axis of axes) {
      while (rest === 1 && at < factors.length - 1) rest = sizes[factors[++at]!]!;
      if (factors.length === 0 || rest % mesh[axis]! > 0) break;
      found.set(factors[at]!, [...(found.get(factors[at]!) ?? []), axis]);
      rest /= mesh[axis]!;
    }
  });
  return found;
}

/**
 * The axes of a dimension whose factors are split so. `isExact` is false where a minor factor is split below a major one that is
 * not split to its end, which no block of the dimension is.
 */
export function dimensionAxes(
  factors: readonly number[],
  assignment: Assignment,
  { sizes }: Pick<Factors, 'sizes'>,
  mesh: MeshShape,
): { readonly axes: readonly number[]; readonly isExact: boolean } {
  const axes: number[] = [];
  for (const [i, factor] of factors.entries()) {
    axes.push(...assignment[factor]!);
    if (waysOf(assignment[factor]!, mesh) === sizes[factor]) continue;
    return { axes, isExact: factors.slice(i + 1).every((minor) => assignment[minor]!.length === 0) };
  }
  return { axes, isExact: true };
}

/** The sharding of a tensor whose factors are split so. */
export const shardingBy = (
  dims: Dims,
  assignment: Assignment,
  factors: Pick<Factors, 'sizes'>,
  mesh: MeshShape,
): Sharding => dims.map((each) => dimensionAxes(each, assignment, factors, mesh).axes);

/** The same assignment without axes that some tensor's dimensions cannot have. */
export function representable(
  assignment: Assignment,
  tensors: readonly Dims[],
  factors: Pick<Factors, 'sizes'>,
  mesh: MeshShape,
): Assignment {
  const kept = assignment.map((axes) => [...axes]);
  for (let changed = true; changed; ) {
    changed = false;
    for (const each of tensors.flat()) {
      if (dimensionAxes(each, kept, factors, mesh).isExact) continue;
      const major = each.findIndex((factor) => waysOf(kept[factor]!, mesh) < factors.sizes[factor]!);
      for (const minor of each.slice(major + 1)) kept[minor] = [];
      changed = true;
    }
  }
  return kept;
}

/** Shardings of values, by value. Those that are absent are whole. */
export type Shardings = Map<Value, Sharding>;
