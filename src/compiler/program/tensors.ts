/** @file Data at the compiler's boundary: dtypes, shapes, host arrays and trees of them. */

/** Element types. `bool` is stored as one byte per element. */
export type DType = 'float32' | 'int32' | 'bool';

/** Storage of float32 in fewer bytes. */
export type NarrowFloat = 'bfloat16' | 'float16';

/** Storage in fewer bytes than a dtype's own: programs compute with int32 (int8, uint8) and float32 (the others). */
export type NarrowType = 'int8' | 'uint8' | NarrowFloat;

/** A list of dimension sizes; `[]` is a scalar. */
export type Shape = readonly number[];

/** Shape and element type of a tensor, without a value. */
export interface TensorSpec {
  readonly shape: Shape;
  /** Types that programs compute with. */
  readonly dtype: DType;
  /** How memory holds it, at the boundary of a program; absent: as its dtype. */
  readonly storage?: NarrowType;
}

/** Typed arrays that hold tensors on the host, one per dtype. */
export type HostArray = Float32Array | Int32Array | Uint8Array;

/** Arrays of narrow elements; Uint16Array has the bits of bfloat16 (upper halves of float32) or float16 (IEEE 754). */
export type NarrowArray = Int8Array | Uint8Array | Uint16Array;

/** Arrays that a program may be bound to. */
export type BoundArray = HostArray | NarrowArray;

/** The dtype that each narrow storage holds, its arrays, and of integers the least and the greatest. */
export const NARROW = {
  int8: { dtype: 'int32', array: Int8Array, range: [-128, 127] },
  uint8: { dtype: 'int32', array: Uint8Array, range: [0, 255] },
  bfloat16: { dtype: 'float32', array: Uint16Array },
  float16: { dtype: 'float32', array: Uint16Array },
} as const satisfies Record<
  NarrowType,
  { readonly dtype: DType; readonly array: unknown; readonly range?: readonly [number, number] }
>;

const DTYPE_ARRAYS = { float32: Float32Array, int32: Int32Array, bool: Uint8Array } as const;

type Held = Pick<TensorSpec, 'dtype' | 'storage'>;

/** The type of the arrays that hold a tensor. */
export const arrayTypeOf = ({ dtype, storage }: Held) =>
  storage === undefined ? DTYPE_ARRAYS[dtype] : NARROW[storage].array;

/** A tensor with its values in host memory, row-major. */
export interface HostTensor extends TensorSpec {
  readonly data: HostArray;
}

/** A nested structure of plain objects and arrays with `T` at the leaves. */
export type Tree<T> = T | readonly Tree<T>[] | { readonly [key: string]: Tree<T> };

/** Number of elements of a tensor of this shape. */
export function sizeOf(shape: Shape): number {
  let size = 1;
  for (const dim of shape) size *= dim;
  return size;
}

/** Bytes that a tensor takes on the host. */
export function byteSize(spec: TensorSpec): number {
  return sizeOf(spec.shape) * arrayTypeOf(spec).BYTES_PER_ELEMENT;
}

/** A zeroed host array for `size` elements of `dtype`. */
export const newHostArray = (dtype: DType, size: number): HostArray => new DTYPE_ARRAYS[dtype](size);

/** A host array for `size` elements of `dtype` in `buffer`, from byte `begin` on. */
export const hostArrayIn = (buffer: ArrayBufferLike, begin: number, dtype: DType, size: number): HostArray =>
  new DTYPE_ARRAYS[dtype](buffer as ArrayBuffer, begin, size);

/** Of larger constants that one number fills, programs hold the number. */
export const MAX_UNIFORM_ELEMENTS = 1 << 12;

/** The number that fills an array, NaN and either zero among them; null for several, and for none. */
export function fillOf(data: ArrayLike<number>): number | null {
  if (data.length === 0) return null;
  const first = data[0]!;
  for (let i = 1; i < data.length; i++) if (!Object.is(data[i], first)) return null;
  return first;
}

/** Copies `values` into a host array of `dtype`; booleans become 0 and 1. */
export function hostArrayFrom(dtype: DType, values: ArrayLike<number | boolean>): HostArray {
  const result = newHostArray(dtype, values.length);
  for (let i = 0; i < values.length; i++) result[i] = Number(values[i]);
  return result;
}

/** Whether two shapes have the same dimensions. */
export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

/** `float32[8,256]`, for messages; `bfloat16[8,256]` where memory holds it so. */
export function formatSpec({ dtype, storage, shape }: TensorSpec): string {
  return `${storage ?? dtype}[${shape.join(',')}]`;
}

/**
 * The compiler's only error class: an operation without a rule, a shape that does not fit, a traced value that is read,
 * a binding of the wrong size.
 */
export class CompilerError extends Error {
  override readonly name: string = 'CompilerError';
}

/** The native engine was asked for, and the machine's compiler, its cache or an operation without a rule prevents it: told without a stack. */
export class NativeEngineError extends CompilerError {
  override readonly name: string = 'NativeEngineError';
}

/** A requested device is missing: the machine needs fixing, not the program. */
export class DeviceError extends Error {
  override readonly name = 'DeviceError';
}
