/** @file Record of an operation: meaning, shape, gradient, FLOPs, and the forms that lowerings run it in. */

import type { Lowering } from '../onnx/builder.js';
import type { Attrs, Graph } from '../program/ir.js';
import {
  type DType,
  formatSpec,
  type HostTensor,
  type Shape,
  sizeOf,
  type TensorSpec,
} from '../program/tensors.js';
import type * as tf from '../tfjs/tfjs.js';
import type { DeviceForm } from './deviceForm.js';
import type { FactorRule } from './factors.js';

/** Attributes as tfjs passes them to a kernel. */
export type RawAttrs = Readonly<Record<string, any>>;

/** The record of an operation, which is named after its tfjs kernel or composite. */
export interface Facts {
  /** tfjs's names of the inputs in order; 'list' for any number of inputs. Names ending in '?' are optional. */
  readonly inputs: readonly string[] | 'list';
  /** tfjs's function, where it is named differently from the kernel: 'mul'. */
  readonly call?: string;
  /** Whether tfjs expects a list of outputs, even for one. */
  readonly listOfOutputs?: boolean;
  /** Whether its two operands may be swapped. */
  readonly commutes?: boolean;
  /** Canonical attributes: defaults filled in, axes non-negative. Absent for operations without attributes. */
  readonly attrs?: (raw: RawAttrs, inputs: readonly TensorSpec[]) => Attrs;
  /** The dtypes that inputs are converted to before recording, like tfjs's kernels do. Absent: no conversion. */
  readonly takes?: (inputs: readonly TensorSpec[]) => readonly DType[];
  /** Whether it takes float32 alone, and tfjs's kernel truncates its results for integers. */
  readonly truncates?: boolean;
  /** Shapes and dtypes of the outputs. Throws Misfit for inputs or attributes that lowerings need not support. */
  readonly infer: (
    inputs: readonly TensorSpec[],
    attrs: Attrs,
    bodies: readonly Graph[],
  ) => readonly TensorSpec[];
  /** FLOPs of one execution; absent for operations that only move data. */
  readonly flops?: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attrs: Attrs) => number;
  /** Whether the operation consists of matrix products, which multiply in the current precision. */
  readonly isProduct?: boolean;
  /** Whether its results are its inputs' memory, maybe under another shape. */
  readonly isView?: boolean;
  /** Result for constant inputs, if the operation can be folded. */
  readonly fold?: (inputs: readonly HostTensor[], attrs: Attrs) => HostTensor;
  /** Value of every result element if an input is empty, such as 0 for a sum. */
  readonly ofEmpty?: (dtype: DType, attrs: Attrs) => number;
  /** The input that holds indices, and the axis that they address. */
  readonly indices?: {
    readonly operand: number;
    readonly address: (inputs: readonly TensorSpec[], attrs: Attrs) => Addressed;
  };
  /** Which dimensions are split together over ranks; absent where every rank computes all of it. */
  readonly factors?: FactorRule;
  /** How engines that generate code run it as a whole; absent where they expand it into plainer operations. */
  readonly device?: DeviceForm;
}

/** Meaning of an operation, in tf operations. */
interface Meaning {
  /** Computes the outputs; tfjs can differentiate the first. */
  readonly decompose: (inputs: readonly tf.Tensor[], attrs: Attrs) => tf.Tensor[];
  /**
   * Gradients of the first output by the differentiable inputs, for traced calls; absent: those of `decompose`. Those of
   * kernels are tfjs's.
   */
  readonly gradient?: (
    dy: tf.Tensor,
    inputs: readonly tf.Tensor[],
    outputs: readonly tf.Tensor[],
    attrs: Attrs,
  ) => tf.Tensor[];
  /** The gradient by an input behind these that has one, named by its index, recorded only where something depends on it. */
  readonly lateGradient?: (
    dy: tf.Tensor,
    index: number,
    inputs: readonly tf.Tensor[],
    outputs: readonly tf.Tensor[],
    attrs: Attrs,
  ) => tf.Tensor;
}

/** An operation that every lowering has a form for. */
export interface PlainOperation extends Facts {
  readonly onnx: Lowering;
  readonly decompose?: never;
}

/** An operation that a lowering may keep or expand: ONNX keeps those that have a form for it. */
export interface Composite extends Facts, Meaning {
  readonly onnx?: Lowering;
}

/**
 * The record of an operation: all that is known of it but its C code, which stands in native. Every lowering either has a
 * form of it, or its meaning to expand.
 */
export type Operation = PlainOperation | Composite;

/** The target of indices. */
export interface Addressed {
  /** Exclusive upper limit of indices. */
  readonly limit: number;
  /** Description for messages: '60 classes'. */
  readonly what: string;
}

/** The classes along the last axis, addressed by labels. */
export const classesOf = ({ shape }: TensorSpec): Addressed => ({
  limit: shape.at(-1)!,
  what: `${shape.at(-1)} classes`,
});

/** Operations by name. */
export type OperationTable = Readonly<Record<string, Operation>>;

export const spec = (shape: Shape, dtype: DType): TensorSpec => ({ shape, dtype });

/** FLOPs function with `perElement` operations per output element. */
export const perOutputElement =
  (perElement = 1) =>
  (_inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]): number =>
    perElement * sizeOf(outputs[0]!.shape);

/** FLOPs function with `perElement` operations per element of the first input. */
export const perInputElement =
  (perElement = 1) =>
  (inputs: readonly TensorSpec[]): number =>
    perElement * sizeOf(inputs[0]!.shape);

/** Error of a rule for a call that does not fit; the tracer adds operation and place. */
export class Misfit extends Error {}

/** Formats inputs or attributes for messages. */
const format = (got: unknown): string => {
  const isSpec = (value: unknown): value is TensorSpec => typeof value === 'object' && 'dtype' in value!;
  if (!Array.isArray(got)) return isSpec(got) ? formatSpec(got) : String(got);
  if (!got.some(isSpec)) return `[${got.join(',')}]`;
  return got.length === 1
    ? format(got[0])
    : `${got.slice(0, -1).map(format).join(', ')} and ${format(got.at(-1))}`;
};

/** Throws with the expectation and the actual value unless `fits`. */
export function expects(fits: boolean, expected: string, got: unknown): asserts fits {
  if (!fits) throw new Misfit(`expected ${expected}, got ${format(got)}`);
}

/** Requires each input to have one of these dtypes. */
export function expectsDtypes(inputs: readonly TensorSpec[], dtypes: readonly DType[]): void {
  const expected = `${dtypes.join(' or ')} (tf.cast converts)`;
  expects(
    inputs.every(({ dtype }) => dtypes.includes(dtype)),
    expected,
    inputs,
  );
}

/** Requires all inputs to have the same dtype, out of these. */
export function expectsOneDtype(inputs: readonly TensorSpec[], dtypes: readonly DType[] = ANY): void {
  const isSame = inputs.every(({ dtype }) => dtype === inputs[0]!.dtype);
  expects(isSame, 'tensors of one dtype (tf.cast converts)', inputs);
  expectsDtypes(inputs, dtypes);
}

export const FLOAT: readonly DType[] = ['float32'];
export const NUMBERS: readonly DType[] = ['float32', 'int32'];
export const INT: readonly DType[] = ['int32'];
export const BOOL: readonly DType[] = ['bool'];
export const ANY: readonly DType[] = ['float32', 'int32', 'bool'];

/** Whether `value` is an integer from `low` to `high`. */
export const isWithin = (value: unknown, low: number, high = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isInteger(value) && (value as number) >= low && (value as number) <= high;

/** Requires `shape` to be a list of sizes. */
export function expectsShape(shape: unknown): asserts shape is Shape {
  const isShape = Array.isArray(shape) && shape.every((dim) => isWithin(dim, 0));
  expects(isShape, 'dimensions that are integers, 0 or more', shape);
}

/** Resolves a negative axis. @throws Misfit where a tensor of this rank has no such axis. */
export function resolveAxis(axis: unknown, rank: number): number {
  expects(isWithin(axis, -rank, rank - 1), axesOf(rank), axis);
  return axis < 0 ? axis + rank : axis;
}

/** Resolves axes; none means all. @throws Misfit for an invalid or repeated axis. */
export function resolveAxes(axes: number | readonly number[] | null | undefined, rank: number): number[] {
  const given = axes ?? Array.from({ length: rank }, (_, axis) => axis);
  const resolved = [given].flat().map((axis) => resolveAxis(axis, rank));
  expects(new Set(resolved).size === resolved.length, 'axes that differ', given);
  return resolved;
}

/** Requires canonical, distinct axes of this rank. */
export function expectsAxes(axes: readonly number[], rank: number): void {
  const fit = new Set(axes).size === axes.length && axes.every((axis) => isWithin(axis, 0, rank - 1));
  expects(fit, `axes below ${rank}, each once`, axes);
}

const axesOf = (rank: number): string =>
  rank === 0 ? 'no axis of a scalar' : `an axis from ${-rank} to ${rank - 1}`;
