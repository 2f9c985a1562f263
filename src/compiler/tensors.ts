/** @file Data at the compiler's boundary: dtypes, shapes, host arrays and trees of them. */

/** Element types. `bool` is stored as one byte per element. */
export type DType = 'float32' | 'int32' | 'bool';

/** A list of dimension sizes; `[]` is a scalar. */
export type Shape = readonly number[];

/** Shape and element type of a tensor, without a value. */
export interface TensorSpec {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Typed arrays that hold tensors on the host, one per dtype. */
export type HostArray = Float32Array | Int32Array | Uint8Array;

/** Arrays that a program may be bound to: host arrays, and Uint16Array for bfloat16 (upper halves of float32). */
export type BoundArray = HostArray | Uint16Array;

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

/** Bytes that one element of `dtype` takes on the host. */
function bytesPerElement(dtype: DType): number {
  return dtype === 'bool' ? 1 : 4;
}

/** Bytes that a tensor takes on the host. */
export function byteSize(spec: TensorSpec): number {
  return sizeOf(spec.shape) * bytesPerElement(spec.dtype);
}

/** A zeroed host array for `size` elements of `dtype`. */
export function newHostArray(dtype: DType, size: number): HostArray {
  if (dtype === 'float32') return new Float32Array(size);
  return dtype === 'int32' ? new Int32Array(size) : new Uint8Array(size);
}

/** A host array for `size` elements of `dtype` in `buffer`, from byte `begin` on. */
export function hostArrayIn(buffer: ArrayBufferLike, begin: number, dtype: DType, size: number): HostArray {
  if (dtype === 'float32') return new Float32Array(buffer, begin, size);
  return dtype === 'int32' ? new Int32Array(buffer, begin, size) : new Uint8Array(buffer, begin, size);
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

/** `float32[8,256]`, for messages. */
export function formatSpec(spec: TensorSpec): string {
  return `${spec.dtype}[${spec.shape.join(',')}]`;
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
