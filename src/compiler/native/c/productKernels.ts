/** @file Kernels of the runtime's matrix products, by precision. */
import { operandBytes, type Precision } from '../../program/precision.js';
import { storageBytes } from '../plan/views.js';
import { localCpuinfo } from '../toolchain/cpuFeatures.js';
import type { Bfloat16Products } from '../toolchain/kernelTable.js';

/** The runtime's side of a precision (luthier.h). */
interface ProductKernels {
  /** Its constant, and the value of that. */
  readonly constant: string;
  readonly value: number;
  /** The constant for products by operands that persist between runs, if that is another; they are packed as memory holds them. */
  readonly kept?: string;
  /** Feature of CPUs that multiply rounded operands as memory holds them; others pack them as float32. */
  readonly feature?: RegExp;
  /** Whether the machine's table of kernels chooses among instructions for it. */
  readonly isChosen?: true;
}

/** Programs with products of other precisions run on another engine. */
const KERNELS: Readonly<Partial<Record<Precision, ProductKernels>>> = {
  float32: { constant: 'LT_FLOAT32', value: 0 },
  // program.h says which instructions these are, by the choice of the program.
  bfloat16: {
    constant: 'LT_HALVES',
    kept: 'LT_HALVES_KEPT',
    value: 1,
    feature: /\bavx512_bf16\b/,
    isChosen: true,
  },
};

/** Whether the runtime multiplies in a precision. */
export const hasKernels = (precision: Precision): boolean => KERNELS[precision] !== undefined;

/** Whether instructions for a precision are chosen by the machine's table. */
export const isChosen = (precision: Precision): boolean => KERNELS[precision]?.isChosen === true;

/** The kernels of a precision that the runtime multiplies in. */
export const kernelsOf = (precision: Precision): ProductKernels => KERNELS[precision]!;

let cpu: string | undefined;

/**
 * Bytes of an element of a packed operand.
 *
 * @param products instructions of the run; undefined for those of a CPU like this one, which multiplies narrow operands if it can.
 * @param isKept whether the operand persists between runs.
 */
export function packedBytesOf(precision: Precision, products?: Bfloat16Products, isKept = false): number {
  const { feature, kept, isChosen } = KERNELS[precision] ?? {};
  cpu ??= localCpuinfo();
  const byNarrow =
    isChosen && products !== undefined ? products !== 'float32 instructions' : feature?.test(cpu) === true;
  return byNarrow || (isKept && kept !== undefined) ? operandBytes(precision) : storageBytes('float32');
}
