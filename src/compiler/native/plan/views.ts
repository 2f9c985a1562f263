/**
 * @file Views: offset, shape and strides of a tensor in a buffer. Most data-moving operations only make another view.
 */
import {
  arrayTypeOf,
  type DType,
  NARROW,
  type NarrowType,
  type Shape,
  sizeOf,
} from '../../program/tensors.js';

/** Element storage: narrow at the border, and that of rounded operands where every reader rounds anyway. */
export type Storage = DType | NarrowType;

/** Memory of a buffer. Offsets are in bytes. */
export type Home =
  | { readonly kind: 'input' | 'output' | 'constant'; readonly index: number }
  /** Memory of the program; memory planning sets the offset. */
  | { readonly kind: 'arena'; offset: number }
  /** Memory per thread, for one block of rows of a chain. */
  | { readonly kind: 'scratch'; offset: number }
  /** No memory: only the loop that computes it reads it. */
  | { readonly kind: 'register' }
  /** A part of another buffer, from element `offset` on; which part, depends on the turn of a loop. */
  | { readonly kind: 'slice'; readonly of: Buffer; readonly offset: number; readonly turn: Turn | null };

/** Operations that are repeated, or done where a predicate holds. */
export interface Loop {
  /** Number of turns. */
  readonly length: number;
  /** A bool in memory, which has to be `holds` for the loop to be entered. */
  readonly predicate?: { readonly view: View; readonly holds: boolean };
}

/** Where the slice of a loop's turn begins: (turn + shift) * step elements further on, with turns modulo `period`. */
export interface Turn {
  readonly loop: Loop;
  readonly step: number;
  readonly shift: number;
  /** 0 for none. */
  readonly period: number;
}

/** Memory of one tensor, or of several that contain each other. */
export interface Buffer {
  readonly id: number;
  /** Number of elements. */
  readonly size: number;
  storage: Storage;
  home: Home;
  /** Whether it keeps its place, since slices of it are accessed. */
  pinned?: boolean;
}

/** The buffer whose memory a buffer lies in: its own, or that which it is a slice of. */
export function rootOf(buffer: Buffer): Buffer {
  let root = buffer;
  while (root.home.kind === 'slice') root = root.home.of;
  return root;
}

/** A buffer, the one that it is a slice of, and so on to its root. */
export function holdersOf(buffer: Buffer): Buffer[] {
  const { home } = buffer;
  return home.kind === 'slice' ? [buffer, ...holdersOf(home.of)] : [buffer];
}

/** The loops by whose turns a slice moves. */
export function turnsOf(buffer: Buffer): Loop[] {
  const { home } = buffer;
  if (home.kind !== 'slice') return [];
  return [...turnsOf(home.of), ...(home.turn === null ? [] : [home.turn.loop])];
}

/** A buffer's elements as a tensor: element (i, j, …) is at offset + i * strides[0] + j * strides[1] + … */
export interface View {
  readonly buffer: Buffer;
  readonly offset: number;
  readonly shape: Shape;
  readonly strides: readonly number[];
}

export const isNarrow = (storage: Storage): storage is NarrowType => storage in NARROW;

/** The dtype of values in a storage. */
export const storedDtype = (storage: Storage): DType => (isNarrow(storage) ? NARROW[storage].dtype : storage);

/** Bytes per stored element. */
export const storageBytes = (storage: Storage): number =>
  arrayTypeOf(isNarrow(storage) ? { dtype: NARROW[storage].dtype, storage } : { dtype: storage })
    .BYTES_PER_ELEMENT;

const SHORT: Partial<Record<Storage, string>> = {
  bfloat16: ' bf16',
  float16: ' f16',
  int8: ' i8',
  uint8: ' u8',
};

/** Short name of a storage that is not a dtype's own, behind a blank, for dumps and profiles; else nothing. */
export const shortStorage = (storage: Storage | undefined): string => (storage && SHORT[storage]) ?? '';

/** Strides of a contiguous row-major tensor. */
export function rowMajor(shape: Shape): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let i = shape.length - 2; i >= 0; i--) strides[i] = strides[i + 1]! * shape[i + 1]!;
  return strides;
}

/** A whole buffer as a row-major tensor. */
export const wholeView = (buffer: Buffer, shape: Shape): View => ({
  buffer,
  offset: 0,
  shape,
  strides: rowMajor(shape),
});

/** Whether the elements are contiguous in row-major order, ignoring strides of axes of size 1. */
export function isContiguous({ shape, strides }: View): boolean {
  const expected = rowMajor(shape);
  return sizeOf(shape) <= 1 || shape.every((dim, i) => dim === 1 || strides[i] === expected[i]);
}

/** Axes that merge into one with a single stride. */
export interface Run {
  readonly size: number;
  readonly stride: number;
}

/** Merges axes into as few runs as possible, dropping axes of size 1. */
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

/** The same elements under another shape, or null if strides can't express it. */
export function reshapeView(view: View, shape: Shape): View | null {
  const { buffer, offset } = view;
  if (sizeOf(shape) === 0) return { buffer, offset, shape, strides: rowMajor(shape) };
  const runs = mergeAxes(view.shape, view.strides);
  const strides = new Array<number>(shape.length).fill(0);
  let next = runs.length - 1;
  // Elements of the current run that the axes so far, from the last, have used.
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

/** `size[i]` elements along axis i, from `begin[i]` on in steps of `steps[i]`. */
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

/** A view broadcast to a larger shape, by NumPy's rule. */
export function broadcastView(view: View, shape: Shape): View {
  const added = shape.length - view.shape.length;
  const strides = shape.map((dim, i) => {
    const own = view.shape[i - added];
    return own === undefined || (own === 1 && dim !== 1) ? 0 : view.strides[i - added]!;
  });
  return { ...view, shape, strides };
}

/** The inverse of a permutation. */
export function invertPermutation(perm: readonly number[]): number[] {
  const result = new Array<number>(perm.length);
  perm.forEach((axis, i) => {
    result[axis] = i;
  });
  return result;
}

/** Whether two whole tensors are the same part of a buffer in every turn. */
export function samePlace(a: View, b: View): boolean {
  const [x, y] = [a.buffer.home, b.buffer.home];
  const isPart = x.kind === 'slice' && y.kind === 'slice' && x.turn === null && y.turn === null;
  return isPart && x.of === y.of && x.offset === y.offset && sameView(a, { ...b, buffer: a.buffer });
}

/** Whether two views of one shape have the same elements in the same order. */
export const sameView = (a: View, b: View): boolean =>
  a.buffer === b.buffer &&
  a.offset === b.offset &&
  a.shape.every((dim, i) => dim === b.shape[i] && (dim === 1 || a.strides[i] === b.strides[i]));
