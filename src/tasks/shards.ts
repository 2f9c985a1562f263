/** @file Parts of variables that the ranks of a mesh hold: their places, and copies between a part and the whole. */
import { type Group, memberOf, membersOf, sizeOf } from '../compiler/index.js';

/** The part of a variable that a rank holds. */
export interface Shard {
  /** Of the variable. */
  readonly path: string;
  /** Shape of the whole variable. */
  readonly whole: readonly number[];
  /** Shape of the part. */
  readonly shape: readonly number[];
  /** Index of its first element along each dimension of the whole. */
  readonly begin: readonly number[];
  /** The ranks that hold the variable together: those along the axes that split it. */
  readonly group: Group;
  /** Numbers of the axes that split each dimension. */
  readonly axes: readonly (readonly number[])[];
}

/**
 * A rank's part of a variable.
 *
 * @param axes numbers of the axes of the mesh that split each dimension.
 * @returns the dimension that its axes don't divide, where there is one
 */
export function shardOf(
  { path, shape: whole }: { readonly path: string; readonly shape: readonly number[] },
  mesh: readonly number[],
  axes: readonly (readonly number[])[],
  rank: number,
): Shard | number {
  const groups = axes.map((own): Group => ({ mesh, axes: own }));
  const uneven = whole.findIndex((size, dim) => size % membersOf(groups[dim]!) > 0);
  if (uneven >= 0) return uneven;
  const shape = whole.map((size, dim) => size / membersOf(groups[dim]!));
  const begin = shape.map((size, dim) => size * memberOf(groups[dim]!, rank));
  return { path, whole, shape, begin, group: { mesh, axes: axes.flat() }, axes };
}

/** Whether the part is not all of its variable. */
export const isPart = ({ group }: Shard): boolean => membersOf(group) > 1;

type Elements = ArrayLike<number> & { set(from: never, at?: number): void };

/**
 * Copies a rank's part of a variable out of the whole.
 *
 * @param whole the variable's elements, or some that follow one another.
 * @param first the number of the first of them in the variable.
 */
export function cut<T extends Elements>(whole: T, shard: Shard, part: T, first = 0): void {
  for (const { at, from, size } of runsOf(shard, first, first + whole.length))
    part.set(slice(whole, at - first, size), from);
}

/** Copies a rank's part of a variable into the whole, as `cut` out of it. */
export function paste<T extends Elements>(part: T, shard: Shard, whole: T, first = 0): void {
  for (const { at, from, size } of runsOf(shard, first, first + whole.length))
    whole.set(slice(part, from, size), at - first);
}

const slice = (array: Elements, begin: number, size: number): never =>
  (array as unknown as Float32Array).subarray(begin, begin + size) as never;

/**
 * Elements that follow one another in the part, `from` its first, and in the whole, `at` its first: those of the whole's elements
 * from `first` up to `last`.
 */
function* runsOf(
  { whole, shape, begin }: Shard,
  first: number,
  last: number,
): Generator<{ at: number; from: number; size: number }> {
  let dim = shape.length;
  let size = 1;
  do {
    dim--;
    size *= shape[dim] ?? 1;
  } while (dim > 0 && shape[dim] === whole[dim]);
  if (size === 0) return;
  const strides = whole.map((_, i) => sizeOf(whole.slice(i + 1)));
  const origin = begin.reduce((sum, each, i) => sum + each * strides[i]!, 0);
  const outer = shape.slice(0, Math.max(0, dim));
  const count = sizeOf(outer);
  const placeOf = (run: number): number => {
    let [place, rest] = [origin, run];
    for (let i = outer.length - 1; i >= 0; i--) {
      place += (rest % outer[i]!) * strides[i]!;
      rest = Math.floor(rest / outer[i]!);
    }
    return place;
  };
  // Runs rise in the whole: the first that ends behind `first`.
  let [run, behind] = [0, count];
  while (run < behind) {
    const middle = (run + behind) >> 1;
    if (placeOf(middle) + size > first) behind = middle;
    else run = middle + 1;
  }
  for (; run < count; run++) {
    const at = placeOf(run);
    if (at >= last) return;
    const [from, to] = [Math.max(at, first), Math.min(at + size, last)];
    yield { at: from, from: run * size + from - at, size: to - from };
  }
}
