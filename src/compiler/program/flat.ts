/** @file Layout of many variables in one flat buffer, and views of it. */
import type { Group } from '../rules/collectiveRules.js';
import { widen } from './narrowStorage.js';
import { type DType, NARROW, type NarrowArray, type NarrowType, type TensorSpec } from './tensors.js';

/** The variable that parts are of, for an update of it as a whole. */
export interface WholeVariable {
  readonly shape: readonly number[];
  /** Numbers of the axes of the mesh that split each dimension. */
  readonly axes: readonly (readonly number[])[];
  /** Its place where one process holds it. */
  readonly offset: number;
}

/** A variable to place. Variables of a group are adjacent, so that one rule can update them all. */
export interface FlatVariable {
  name: string;
  shape: readonly number[];
  group: string;
  /** Its first axes, along which it stacks variables; absent for one. */
  repeatPrefix?: readonly number[];
  /** How the buffer holds it; absent: as float32. */
  storage?: NarrowType;
  /** Factor of the steps that move it; absent: 1. */
  updateScale?: number;
  /** The ranks that hold the variable together, each a part of this shape; absent for one that is whole. */
  ranks?: Group;
  /** Of a stack of variables, those that hold one of these together; absent where all that hold the stack do. */
  sliceRanks?: Group;
  /** Of parts that are updated by the whole; absent for those that are updated alone. */
  whole?: WholeVariable;
}

/** Position of a variable: `offset` counts float32 elements of the buffer, `size` those of the variable. */
export interface FlatEntry {
  name: string;
  shape: readonly number[];
  offset: number;
  size: number;
  group: string;
  /** Its first axes, along which it stacks variables; absent for one. */
  repeatPrefix?: readonly number[];
  /** How the buffer holds it; absent: as float32. */
  storage?: NarrowType;
  /** Factor of the steps that move it; absent: 1. */
  updateScale?: number;
  /** The ranks that hold the variable together, each a part of this shape; absent for one that is whole. */
  ranks?: Group;
  /** Of a stack of variables, those that hold one of these together; absent where all that hold the stack do. */
  sliceRanks?: Group;
  /** Of parts that are updated by the whole; absent for those that are updated alone. */
  whole?: WholeVariable;
}

/** A contiguous range of the buffer; `size` includes padding. */
export interface FlatGroup {
  name: string;
  offset: number;
  size: number;
}

/** Layout of a flat buffer of `size` elements. */
export interface FlatLayout {
  entries: FlatEntry[];
  groups: FlatGroup[];
  size: number;
}

/** Element types of flat buffers. */
export type FlatDtype = 'float32' | NarrowType;

/** Flat buffers by their element type. */
export type FlatArray = Float32Array | NarrowArray;

/** The type of the flat buffers that hold so many bytes an element. */
export const flatArrayType = (dtype: FlatDtype) => (dtype === 'float32' ? Float32Array : NARROW[dtype].array);

/** Elements per cache line of 64 bytes of float32. Every entry starts on a line, for aligned vector loads. */
const ALIGNMENT = 16;

/** The float32 elements of a buffer that so many stored ones take. */
const wordsOf = (size: number, storage: NarrowType | undefined): number =>
  Math.ceil((size * flatArrayType(storage ?? 'float32').BYTES_PER_ELEMENT) / Float32Array.BYTES_PER_ELEMENT);

/** Elements that an entry takes, padding included. */
export const paddedSize = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/**
 * Places variables in one buffer: groups in the order of their first variable, variables in the given order within
 * their group. The padding behind each variable is zero, and every update keeps it zero.
 *
 * @param variables with unique names; a scalar has shape [].
 * @throws RangeError for a bad shape or a repeated name.
 */
export function flatLayout(variables: readonly FlatVariable[]): FlatLayout {
  const byGroup = new Map<string, FlatVariable[]>();
  const names = new Set<string>();
  for (const variable of variables) {
    if (names.has(variable.name))
      throw new RangeError(`flatLayout: two variables are named '${variable.name}'.`);
    names.add(variable.name);
    const members = byGroup.get(variable.group);
    if (members) members.push(variable);
    else byGroup.set(variable.group, [variable]);
  }
  const layout: FlatLayout = { entries: [], groups: [], size: 0 };
  for (const [group, members] of byGroup) {
    const offset = layout.size;
    for (const { name, shape, repeatPrefix, storage, updateScale, ranks, sliceRanks, whole } of members) {
      const size = elementCount(name, shape);
      const rest = {
        ...(repeatPrefix && { repeatPrefix }),
        ...(storage && { storage }),
        ...(updateScale !== undefined && { updateScale }),
        ...(ranks && { ranks }),
        ...(sliceRanks && { sliceRanks }),
        ...(whole && { whole }),
      };
      layout.entries.push({ name, shape: [...shape], offset: layout.size, size, group, ...rest });
      layout.size += paddedSize(wordsOf(size, storage));
    }
    layout.groups.push({ name: group, offset, size: layout.size - offset });
  }
  return layout;
}

function elementCount(name: string, shape: readonly number[]): number {
  let size = 1;
  for (const dim of shape) {
    if (!Number.isInteger(dim) || dim < 0) {
      throw new RangeError(
        `flatLayout: variable '${name}' has shape [${shape.join(', ')}]; expected integers, 0 or more.`,
      );
    }
    size *= dim;
  }
  return size;
}

/** The type that programs compute with of what a flat buffer holds. */
export const computedDtype = (storage: NarrowType | undefined): DType =>
  storage === undefined ? 'float32' : NARROW[storage].dtype;

/** Specs of all variables, by name. */
export function layoutSpecs({ entries }: FlatLayout): Record<string, TensorSpec> {
  return Object.fromEntries(
    entries.map(({ name, shape, storage }) => [
      name,
      { shape, dtype: computedDtype(storage), ...(storage && { storage }) },
    ]),
  );
}

/** An entry's elements in a buffer, without copying. */
export function heldView(
  buffer: Float32Array,
  { offset, size, storage }: Pick<FlatEntry, 'offset' | 'size' | 'storage'>,
): FlatArray {
  if (storage === undefined) return buffer.subarray(offset, offset + size);
  const begin = buffer.byteOffset + offset * buffer.BYTES_PER_ELEMENT;
  return new NARROW[storage].array(buffer.buffer as ArrayBuffer, begin, size);
}

/**
 * Views of all variables in a buffer, by name, without copying, as the buffer holds them.
 *
 * @throws RangeError where the buffer's length is not the layout's.
 */
export function heldViews(layout: FlatLayout, buffer: Float32Array): Record<string, FlatArray> {
  if (buffer.length !== layout.size) {
    throw new RangeError(`flatViews: expected a buffer of ${layout.size} elements, got ${buffer.length}.`);
  }
  return Object.fromEntries(layout.entries.map((entry) => [entry.name, heldView(buffer, entry)]));
}

/** Those of a layout without narrow variables. */
export const flatViews = (layout: FlatLayout, buffer: Float32Array): Record<string, Float32Array> =>
  heldViews(layout, buffer) as Record<string, Float32Array>;

/** The values of all variables: the views, and copies of those that are narrow, which are Int32Array where these hold integers. */
export function floatsOf(
  { entries }: FlatLayout,
  views: Readonly<Record<string, FlatArray>>,
): Record<string, Float32Array> {
  return Object.fromEntries(
    entries.map(({ name, storage }) => {
      const view = views[name]!;
      return [name, (storage === undefined ? view : widen(view as NarrowArray, storage)) as Float32Array];
    }),
  );
}
