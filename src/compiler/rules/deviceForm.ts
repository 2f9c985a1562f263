/**
 * @file Forms in which engines that generate code run an operation as a whole, as plans see it. The code itself
 * stands with the language, as in native/c.
 */

import type { PartKind } from '../profile/part.js';
import type { Attrs, Node } from '../program/ir.js';
import type { Shape } from '../program/tensors.js';

interface Form {
  /** Whether a composite stays whole; otherwise, it is expanded. Absent: always. */
  readonly keeps?: (node: Node) => boolean;
}

/** One value for each element, by an expression on those of the operands. Loops fuse them. */
export interface MapForm extends Form {
  readonly kind: 'map';
  /** Whether it compiles to a few instructions: recomputing is cheaper than storing. */
  readonly isCheap?: boolean;
  /** The count of its expression: elements of the result, or the column, along a last axis that the operand lacks. */
  readonly counts?: 'elements' | 'columns';
}

/** A reduction over axes, and the index of the first element that is equal to an extremum. Loops fuse them. */
export interface ReductionForm extends Form {
  readonly kind: 'reduction' | 'first';
}

/** A gather, which loops fuse; a matrix product; a view of the operand; one number; other moves, which layout makes copies. */
export interface BuiltInForm extends Form {
  readonly kind: 'gather' | 'product' | 'view' | 'move';
}

/** One number for all elements, which elementwise readers take in place of an operand. */
interface FillForm extends Form {
  readonly kind: 'fill';
  readonly value: (attrs: Attrs) => number;
}

/** Operands of a call, by their shapes. */
export type Shaped = readonly { readonly shape: Shape }[];

/** Operands or results of a call, each with the two axes that index items; the other axes stay within an item. */
type Items = readonly (readonly [operand: number, axes: readonly [outer: number, inner: number]])[];

/** A function of the runtime. */
export interface CallForm extends Form {
  readonly kind: 'call';
  /** Name in dumps and profiles. */
  readonly name: string;
  /** How many leading operands have a contiguous last axis: heads of attention, channels of images. */
  readonly inRows?: number;
  /** The operands that are row-major as a whole. */
  readonly contiguous?: readonly number[];
  /** Whether operands of whole numbers are row-major as well. */
  readonly contiguousInts?: boolean;
  /** How many leading operands it reads from narrow memory whatever the precision; by default, those that it rounds. */
  readonly narrowOperands?: number;
  /** The operand that is codes of 8 bits, or pairs of 4, which it reads as memory holds them where they are narrow. */
  readonly codes?: number;
  /** The operands that it reads from memory of int8 as it does from that of int32. */
  readonly bytes?: readonly number[];
  /** Whether results may have any strides but along the last axis. */
  readonly writesRows?: boolean;
  /** Where the precision rounds: leading operands that are rounded, and so may be stored so, and leading results that may be. */
  readonly rounds?: { readonly operands: number; readonly results: number };
  /** Whether the result may share the first operand's memory, in whichever storage. */
  readonly isInPlace?: boolean;
  /** Whether it packs an operand into the memory that all threads share. */
  readonly usesWorkspace?: boolean;
  /** What threads take equal contiguous shares of: no barrier is needed before a call with the same shares. */
  readonly shares?: (
    inputs: Shaped,
    outputs: Shaped,
    attrs: Attrs,
  ) => { readonly read?: Items; readonly written?: Items };
  /** Whether it asks other ranks: then it is in every run of each of them, in the same order. */
  readonly asksRanks?: boolean;
  /** Its kind in profiles, 'other' by default, and the FLOPs that it takes. */
  readonly part?: PartKind;
  readonly work?: (inputs: Shaped, attrs: Attrs) => number;
}

export type DeviceForm = MapForm | ReductionForm | BuiltInForm | FillForm | CallForm;

export const MAP: MapForm = { kind: 'map' };
export const CHEAP: MapForm = { kind: 'map', isCheap: true };
export const REDUCTION: ReductionForm = { kind: 'reduction' };
export const VIEW: BuiltInForm = { kind: 'view' };
export const MOVE: BuiltInForm = { kind: 'move' };
