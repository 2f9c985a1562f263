/**
 * @file Propagation of shardings: a split goes on through all that is computed of a tensor, in both directions, up to where
 * its axis is taken already (Xu et al., GSPMD, 2021; the order of rounds is Shardy's).
 */
import type { Value } from '../program/ir.js';
import type { Relation } from './relations.js';
import {
  type Assignment,
  dimensionAxes,
  factorAxes,
  type MeshShape,
  representable,
  type Sharding,
  type Shardings,
  waysOf,
  wholeOf,
} from './sharding.js';

const beginsWith = (axes: readonly number[], first: readonly number[]): boolean =>
  first.every((axis, i) => axes[i] === axis);

/** The axes of each factor by the shardings of the values, the first value's where two disagree. */
export function assignmentBy(
  shardings: readonly Sharding[],
  { dims, sizes }: Pick<Relation, 'dims' | 'sizes'>,
  mesh: MeshShape,
): Assignment {
  const assignment = sizes.map((): readonly number[] => []);
  const taken = new Map<number, number>();
  for (const [i, sharding] of shardings.entries()) {
    for (const [factor, axes] of factorAxes(sharding, dims[i]!, { sizes }, mesh)) {
      const own = assignment[factor]!;
      const isFree = axes.every((axis) => (taken.get(axis) ?? factor) === factor);
      if (axes.length <= own.length || !beginsWith(axes, own) || !isFree) continue;
      assignment[factor] = axes;
      for (const axis of axes) taken.set(axis, factor);
    }
  }
  return representable(assignment, dims, { sizes }, mesh);
}

/** Splits values of a relation further. @returns whether it did. */
function spread(
  relation: Relation,
  shardings: Shardings,
  isFixed: (value: Value) => boolean,
  mesh: MeshShape,
): boolean {
  const { values, dims, sizes } = relation;
  const current = values.map((value) => shardings.get(value) ?? wholeOf(value.shape));
  if (current.every((sharding) => sharding.every((axes) => axes.length === 0))) return false;
  const assignment = assignmentBy(current, relation, mesh);
  let changed = false;
  values.forEach((value, i) => {
    if (isFixed(value) || value.data !== undefined) return;
    const known = shardings.get(value) ?? wholeOf(value.shape);
    const next = known.map((axes) => [...axes]);
    dims[i]!.forEach((factors, dim) => {
      const { axes } = dimensionAxes(factors, assignment, { sizes }, mesh);
      const more = axes.slice(next[dim]!.length);
      if (more.length === 0 || !beginsWith(axes, next[dim]!)) return;
      if (more.some((axis) => next.flat().includes(axis))) return;
      if (value.shape[dim]! % waysOf(axes, mesh) > 0) return;
      next[dim] = [...axes];
      changed = true;
    });
    shardings.set(value, next);
  });
  return changed;
}

/** Splits values by those that are split already: first through operations that move dimensions alone, then through sums. */
export function propagate(
  relations: readonly Relation[],
  shardings: Shardings,
  isFixed: (value: Value) => boolean,
  mesh: MeshShape,
): void {
  const rounds = [relations.filter(({ isSum }) => !isSum), relations];
  for (const some of rounds) {
    const backwards = [...some].reverse();
    for (let changed = true; changed; ) {
      changed = false;
      for (const relation of [...some, ...backwards])
        if (spread(relation, shardings, isFixed, mesh)) changed = true;
    }
  }
}
