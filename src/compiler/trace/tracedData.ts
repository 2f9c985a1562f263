/** @file Data of traced tensors: what they stand for, and which are seen to be equal or 0. */
import type { Node, Value } from '../program/ir.js';
import type { DType } from '../program/tensors.js';
import type * as tf from '../tfjs/tfjs.js';

/** What a tensor's data stand for; tensors made here also use it as their data's identity. */
export class Stored {
  refCount = 1;

  constructor(
    readonly dtype: DType | 'string' | 'complex64',
    readonly shape: number[],
    /**
     * Host values of a constant or of a value that was read; null for other traced tensors. Those of complex numbers
     * alternate between the parts.
     */
    public values: tf.BackendValues | null,
    /** The traced value; for constants, made at first use. */
    public value: Value | null,
    /** The real and imaginary parts of complex numbers; for constants, made at first use. */
    public parts: Parts | null = null,
  ) {}

  /** Computes the values of what depends on constants alone; absent for the rest. */
  compute?: () => tf.BackendValues;
}

/** Values of the real and imaginary parts. */
export type Parts = readonly [real: Value, imag: Value];

/** Whether all values are the same number, of one sign. A plain loop: callbacks would take most of the time of tracing a large model. */
export function isUniform(values: ArrayLike<number>): boolean {
  const first = values[0];
  for (let i = 1; i < values.length; i++) if (values[i] !== first) return false;
  return first !== 0 || !Array.prototype.some.call(values, (value) => Object.is(value, -0));
}

/** Whether a node's elements are all seen to be 0. */
export function isZero({ op, inputs, attrs }: Node, isZeros: (value: Value) => boolean): boolean {
  if (op === 'Fill') return attrs.value === 0;
  return op === 'ZerosLike' || (KEEPS_ZEROS.has(op) && isZeros(inputs[0]!));
}

/** Operations that only move elements. */
const KEEPS_ZEROS = new Set(['Reshape', 'ExpandDims', 'Slice']);
