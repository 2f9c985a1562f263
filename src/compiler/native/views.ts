/** @file Views: where a tensor's elements lie in a buffer. Most operations that move data only make another view. */
import { type DType, type Shape, sizeOf } from '../tensors.js';

/** How elements are stored: bool as one byte, bfloat16 where every reader rounds anyway. */
export type Storage = DType | 'bfloat16';

/** Where a buffer's memory comes from. Offsets are bytes. */
export type Home =
  | { readonly kind: 'input' | 'output' | 'constant'; readonly index: number }
  /** Memory of the program; the offset is known once memory is planned. */
  | { readonly kind: 'arena'; offset: number }
  /** Memory of each thread, for one block of rows of a chain. */
  | { readonly kind: 'scratch'; offset: number }
  /** No memory: only the loop that computes it needs it. */
  | { readonly kind: 'register' };

/** A piece of memory that one tensor, or several that lie in each other, live in. */
export interface Buffer {
  readonly id: number;
  /** Elements. */
  readonly size: number;
  storage: Storage;
  home: Home;
}

/** Elements of a buffer as a tensor: element (i, j, …) is at offset + i * strides[0] + j * strides[1] + …. */
export interface View {
  readonly buffer: Buffer;
  readonly offset: number;
  readonly shape: Shape;
  readonly strides: readonly number[];
}

/** The element type of what is stored so. */
export const storedDtype = (storage: Storage): DType => (storage === 'bfloat16' ? 'float32' : storage);

/** Bytes of one stored element. */
export const storageBytes = (storage: Storage): number =>
  storage === 'bool' ? 1 : storage === 'bfloat16' ? 2 : 4;

/** Strides of a tensor that lies row-major without gaps. */
export function rowMajor(shape: Shape): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let i = shape.length - 2; i >= 0; i--) strides[i] = strides[i + 1]! * shape[i + 1]!;
  return strides;
}

/** The whole buffer as a row-major tensor. */
export const wholeView = (buffer: Buffer, shape: Shape): View => ({
  buffer,
  offset: 0,
  shape,
  strides: rowMajor(shape),
});

/** Whether the elements lie row-major without gaps, whatever the strides along axes of size 1. */
export function isContiguous({ shape, strides }: View): boolean {
  const expected = rowMajor(shape);
  return sizeOf(shape) <= 1 || shape.every((dim, i) => dim === 1 || strides[i] === expected[i]);
}

/** One run of axes that can be walked with a single stride. */
export interface Run {
  readonly size: number;
  readonly stride: number;
}

/** The axes as few runs as possible, axes of size 1 left out: neighbours merge where one stride serves both. */
export function mergeAxes(shape: Shape, strides: readonly number[]): Run[] {
  const runs: Run[] = [];
  shape.forEach((size, i) => {
    if (size === 1) return;
    const stride = strides[i]!;
    const last = runs.at(-1);
    if (last !== undefined && last.stride === stride * size) {
      runs[runs.length - 1] = { size: last.size * size, stride };
    } else runs.push({ size, stride });
  });
  return runs;
}

/** The same elements under another shape, or null where no strides give that order. */
export function reshapeView(view: View, shape: Shape): View | null {
  const { buffer, offset } = view;
  if (sizeOf(shape) === 0) return { buffer, offset, shape, strides: rowMajor(shape) };
  const runs = mergeAxes(view.shape, view.strides);
  const strides = new Array<number>(shape.length).fill(0);
  let next = runs.length - 1;
  // How much of the current run the axes so far, from the last, have taken.
  let taken = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const dim = shape[axis]!;
    if (dim === 1) continue;
    const run = runs[next];
    if (run === undefined || run.size % (taken * dim) !== 0) return null;
    strides[axis] = run.stride * taken;
    taken *= dim;
    if (taken === run.size) {
      next--;
      taken = 1;
    }
  }
  return { buffer, offset, shape, strides };
}

/** Axis i of the result is axis perm[i] of the view. */
export const transposeView = (view: View, perm: readonly number[]): View => ({
  ...view,
  shape: perm.map((axis) => view.shape[axis]!),
  strides: perm.map((axis) => view.strides[axis]!),
});

/** `size[i]` elements along axis i, from `begin[i]` on, each `steps[i]` after the last. */
export const sliceView = (
  view: View,
  begin: readonly number[],
  size: readonly number[],
  steps: readonly number[] = size.map(() => 1),
): View => ({
  buffer: view.buffer,
  offset: view.offset + begin.reduce((sum, start, i) => sum + start * view.strides[i]!, 0),
  shape: [...size],
  strides: view.strides.map((stride, i) => stride * steps[i]!),
});

/** Read as a larger shape, by NumPy's rule of broadcasting. */
export function broadcastView(view: View, shape: Shape): View {
  const added = shape.length - view.shape.length;
  const strides = shape.map((dim, i) => {
    const own = view.shape[i - added];
    return own === undefined || (own === 1 && dim !== 1) ? 0 : view.strides[i - added]!;
  });
  return { ...view, shape, strides };
}

/** The permutation that undoes another. */
export function invertPermutation(perm: readonly number[]): number[] {
  const result = new Array<number>(perm.length);
  perm.forEach((axis, i) => {
    result[axis] = i;
  });
  return result;
}

/** Whether two views of one shape are of the same elements in the same order. */
export const sameView = (a: View, b: View): boolean =>
  a.buffer === b.buffer &&
  a.offset === b.offset &&
  a.shape.every((dim, i) => dim === b.shape[i] && (dim === 1 || a.strides[i] === b.strides[i]));
