/** @file Parts of variables that the ranks of a mesh hold: their places, and copies between a part and the whole. */
import { type Group, memberOf, membersOf } from '../compiler/index.js';

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

/** Copies a rank's part of a variable out of the whole. */
export function cut<T extends Elements>(whole: T, shard: Shard, part: T): void {
  for (const { at, from, size } of runsOf(shard)) part.set(slice(whole, at, size), from);
}

/** Copies a rank's part of a variable into the whole. */
export function paste<T extends Elements>(part: T, shard: Shard, whole: T): void {
  for (const { at, from, size } of runsOf(shard)) whole.set(slice(part, from, size), at);
}

const slice = (array: Elements, begin: number, size: number): never =>
  (array as unknown as Float32Array).subarray(begin, begin + size) as never;

/** Elements that follow one another in the part, `from` its first, and in the whole, `at` its first. */
function* runsOf({ whole, shape, begin }: Shard): Generator<{ at: number; from: number; size: number }> {
  let dim = shape.length;
  let size = 1;
  do {
    dim--;
    size *= shape[dim] ?? 1;
  } while (dim > 0 && shape[dim] === whole[dim]);
  if (size === 0) return;
  const strides = whole.map((_, i) => whole.slice(i + 1).reduce((product, each) => product * each, 1));
  const index = shape.slice(0, Math.max(0, dim)).map(() => 0);
  const first = begin.reduce((sum, each, i) => sum + each * strides[i]!, 0);
  for (let from = 0; ; from += size) {
    yield { at: first + index.reduce((sum, each, i) => sum + each * strides[i]!, 0), from, size };
    let i = index.length - 1;
    while (i >= 0 && index[i] === shape[i]! - 1) index[i--] = 0;
    if (i < 0) return;
    index[i]!++;
  }
}
