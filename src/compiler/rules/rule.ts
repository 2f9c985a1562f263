/** @file What the compiler knows of an operation, whatever it is lowered to. */
import type { Attrs } from '../graph.js';
import { type DType, type HostTensor, type Shape, sizeOf, type TensorSpec } from '../types.js';

/** Attributes as tfjs hands them to a kernel. */
export type RawAttrs = Readonly<Record<string, any>>;

/** The rule of one operation. Its name is the tfjs kernel's name, or a composite's. */
export interface OpRule {
  /** tfjs's names of the inputs, in order; 'list' for kernels that take any number. Names ending in '?' may be absent. */
  readonly inputs: readonly string[] | 'list';
  /** Whether tfjs expects a list of outputs, even of one. */
  readonly listOfOutputs?: boolean;
  /** Canonical attributes: defaults filled in, axes non-negative. Absent: the operation has none. */
  readonly attrs?: (raw: RawAttrs, inputs: readonly TensorSpec[]) => Attrs;
  /** Shapes and dtypes of the outputs. Throws CompilerError where the inputs don't fit. */
  readonly infer: (inputs: readonly TensorSpec[], attrs: Attrs) => readonly TensorSpec[];
  /** Floating-point operations of one execution; absent means that data are only moved. */
  readonly flops?: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attrs: Attrs) => number;
  /** Value for constant inputs, where the operation may be folded. */
  readonly fold?: (inputs: readonly HostTensor[], attrs: Attrs) => HostTensor;
}

/** Rules by operation name. */
export type RuleTable = Readonly<Record<string, OpRule>>;

export const spec = (shape: Shape, dtype: DType): TensorSpec => ({ shape, dtype });

/** FLOPs of an operation that does `perElement` of them for each element of its output. */
export const perOutputElement =
  (perElement = 1) =>
  (_inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]): number =>
    perElement * sizeOf(outputs[0]!.shape);

/** FLOPs of an operation that does `perElement` of them for each element of its first input. */
export const perInputElement =
  (perElement = 1) =>
  (inputs: readonly TensorSpec[]): number =>
    perElement * sizeOf(inputs[0]!.shape);

/** `axis` counted from the front. */
export function resolveAxis(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis;
}
