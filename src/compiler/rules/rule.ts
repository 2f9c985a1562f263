/** @file The rule of an operation: all that holds for it whatever it is lowered to. */
import type { Attrs } from '../ir.js';
import { type DType, formatSpec, type HostTensor, type Shape, sizeOf, type TensorSpec } from '../tensors.js';

/** Attributes as tfjs hands them to a kernel. */
export type RawAttrs = Readonly<Record<string, any>>;

/** The rule of one operation. Its name is the tfjs kernel's name, or a composite's. */
export interface OpRule {
  /** tfjs's names of the inputs, in order; 'list' for kernels that take any number. Names ending in '?' may be absent. */
  readonly inputs: readonly string[] | 'list';
  /** Whether tfjs expects a list of outputs, even of one. */
  readonly listOfOutputs?: boolean;
  /** Whether its two operands may be swapped. */
  readonly commutes?: boolean;
  /** Canonical attributes: defaults filled in, axes non-negative. Absent: the operation has none. */
  readonly attrs?: (raw: RawAttrs, inputs: readonly TensorSpec[]) => Attrs;
  /** The dtypes that inputs become before they are recorded, as tfjs's kernels convert them. Absent: they stay as they are. */
  readonly takes?: (inputs: readonly TensorSpec[]) => readonly DType[];
  /** Shapes and dtypes of the outputs. Throws Misfit unless inputs and attributes are such as every lowering may rely on. */
  readonly infer: (inputs: readonly TensorSpec[], attrs: Attrs) => readonly TensorSpec[];
  /** Floating-point operations of one execution; absent means that data are only moved. */
  readonly flops?: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attrs: Attrs) => number;
  /** Whether that is done by matrix products, which multiply in the precision around their call. */
  readonly isProduct?: boolean;
  /** Value for constant inputs, where the operation may be folded. */
  readonly fold?: (inputs: readonly HostTensor[], attrs: Attrs) => HostTensor;
  /** The element that the whole result consists of where an input has none: that of a sum without terms is 0. */
  readonly ofEmpty?: (dtype: DType, attrs: Attrs) => number;
  /** The input whose elements are indices, by its number, and what they address. */
  readonly indices?: {
    readonly operand: number;
    readonly address: (inputs: readonly TensorSpec[], attrs: Attrs) => Addressed;
  };
}

/** What indices address. */
export interface Addressed {
  /** Indices are 0 to this, exclusive. */
  readonly limit: number;
  /** What has so many, for messages: '60 classes'. */
  readonly what: string;
}

/** The classes along the last axis, which labels address. */
export const classesOf = ({ shape }: TensorSpec): Addressed => ({
  limit: shape.at(-1)!,
  what: `${shape.at(-1)} classes`,
});

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

/** What a rule throws where a call does not fit; the tracer adds which operation's it was, and where it stands. */
export class Misfit extends Error {}

/** Inputs of a call or a part of its attributes, for messages. */
const format = (got: unknown): string => {
  const isSpec = (value: unknown): value is TensorSpec => typeof value === 'object' && 'dtype' in value!;
  if (!Array.isArray(got)) return isSpec(got) ? formatSpec(got) : String(got);
  if (!got.some(isSpec)) return `[${got.join(',')}]`;
  return got.length === 1
    ? format(got[0])
    : `${got.slice(0, -1).map(format).join(', ')} and ${format(got.at(-1))}`;
};

/** Fails, unless `fits`, with what was expected and got. */
export function expects(fits: boolean, expected: string, got: unknown): asserts fits {
  if (!fits) throw new Misfit(`expected ${expected}, got ${format(got)}`);
}

/** Fails unless each input has one of these dtypes. */
export function expectsDtypes(inputs: readonly TensorSpec[], dtypes: readonly DType[]): void {
  const expected = `${dtypes.join(' or ')} (tf.cast converts)`;
  expects(
    inputs.every(({ dtype }) => dtypes.includes(dtype)),
    expected,
    inputs,
  );
}

/** Fails unless all inputs have one dtype, which is one of these. */
export function expectsOneDtype(inputs: readonly TensorSpec[], dtypes: readonly DType[] = ANY): void {
  const isSame = inputs.every(({ dtype }) => dtype === inputs[0]!.dtype);
  expects(isSame, 'tensors of one dtype (tf.cast converts)', inputs);
  expectsDtypes(inputs, dtypes);
}

export const FLOAT: readonly DType[] = ['float32'];
export const NUMBERS: readonly DType[] = ['float32', 'int32'];
export const BOOL: readonly DType[] = ['bool'];
export const ANY: readonly DType[] = ['float32', 'int32', 'bool'];

/** Whether `value` is an integer from `low` to `high`. */
export const isWithin = (value: unknown, low: number, high = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isInteger(value) && (value as number) >= low && (value as number) <= high;

/** Fails unless `shape` is a list of sizes. */
export function expectsShape(shape: unknown): asserts shape is Shape {
  const isShape = Array.isArray(shape) && shape.every((dim) => isWithin(dim, 0));
  expects(isShape, 'dimensions that are integers, 0 or more', shape);
}

/** `axis` counted from the front. @throws Misfit where a tensor of this rank has no such axis. */
export function resolveAxis(axis: unknown, rank: number): number {
  expects(isWithin(axis, -rank, rank - 1), axesOf(rank), axis);
  return axis < 0 ? axis + rank : axis;
}

/** `axes` counted from the front; all of them where there are none. @throws Misfit as `resolveAxis`, and where one comes twice. */
export function resolveAxes(axes: number | readonly number[] | null | undefined, rank: number): number[] {
  const given = axes ?? Array.from({ length: rank }, (_, axis) => axis);
  const resolved = [given].flat().map((axis) => resolveAxis(axis, rank));
  expects(new Set(resolved).size === resolved.length, 'axes that differ', given);
  return resolved;
}

/** Fails unless canonical axes are axes of this rank, each once. */
export function expectsAxes(axes: readonly number[], rank: number): void {
  const fit = new Set(axes).size === axes.length && axes.every((axis) => isWithin(axis, 0, rank - 1));
  expects(fit, `axes below ${rank}, each once`, axes);
}

const axesOf = (rank: number): string =>
  rank === 0 ? 'no axis of a scalar' : `an axis from ${-rank} to ${rank - 1}`;
