/** @file Kernels of the runtime's matrix products, by precision. */
import { operandBytes, type Precision } from '../../program/precision.js';
import { storageBytes } from '../plan/views.js';
import { localCpuinfo } from '../toolchain/cpuFeatures.js';

/** The runtime's side of a precision (luthier.h). */
interface ProductKernels {
  /** Its constant, and the value of that. */
  readonly constant: string;
  readonly value: number;
  /** Feature of CPUs that multiply rounded operands as memory holds them; others pack them as float32. */
  readonly feature?: RegExp;
}

/** Programs with products of other precisions run on another engine. */
const KERNELS: Readonly<Partial<Record<Precision, ProductKernels>>> = {
  float32: { constant: 'LT_FLOAT32', value: 0 },
  bfloat16: { constant: 'LT_BFLOAT16', value: 1, feature: /\bavx512_bf16\b/ },
};

/** Whether the runtime multiplies in a precision. */
export const hasKernels = (precision: Precision): boolean => KERNELS[precision] !== undefined;

/** The kernels of a precision that the runtime multiplies in. */
export const kernelsOf = (precision: Precision): ProductKernels => KERNELS[precision]!;

const packed = new Map<Precision, number>();

/** Bytes of a packed operand on this machine's CPU. */
export function packedBytesOf(precision: Precision): number {
  let bytes = packed.get(precision);
  if (bytes === undefined) {
    const isNarrow = KERNELS[precision]?.feature?.test(localCpuinfo()) === true;
    bytes = isNarrow ? operandBytes(precision) : storageBytes('float32');
    packed.set(precision, bytes);
  }
  return bytes;
}
