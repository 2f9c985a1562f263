/** @file Arguments and results of compiled functions: trees whose leaves are tensors, arrays, numbers or plain values. */
import {
  CompilerError,
  type DType,
  type HostArray,
  type HostTensor,
  isTensor,
  type Tensor,
  type TensorSpec,
} from '../compiler/index.js';

/** A leaf that holds values. */
interface ArrayLeaf {
  readonly path: string;
  readonly spec: TensorSpec;
  /** The values, row-major; awaited, for backends that answer later. */
  readonly values: HostArray | Promise<ArrayLike<number>>;
}

/** Arguments of a call. */
export interface Arguments {
  readonly arrays: readonly ArrayLeaf[];
  /** Whether two calls can share a program: shapes, dtypes, structure, and plain values. */
  readonly signature: string;
  /** Whether results are to be tf.Tensor: an argument is, or there are none. */
  readonly givesTensors: boolean;
  /** The arguments with tensors in the place of arrays, in order. */
  rebuild(tensors: readonly Tensor[]): unknown[];
}

/** Types of elements that programs compute with. */
export const DTYPES: readonly string[] = ['float32', 'int32', 'bool'];

const isHostTensor = (value: object): value is HostTensor =>
  'dtype' in value && 'shape' in value && 'data' in value && ArrayBuffer.isView(value.data);

const isNumbers = (value: unknown): boolean =>
  typeof value === 'number' ||
  typeof value === 'boolean' ||
  (Array.isArray(value) && value.length > 0 && value.every(isNumbers));

function shapeOf(value: unknown, path: string): number[] {
  if (!Array.isArray(value)) return [];
  const [first, ...rest] = value.map((item, i) => shapeOf(item, `${path}[${i}]`));
  const odd = rest.findIndex((shape) => `${shape}` !== `${first}`);
  if (odd >= 0)
    throw new CompilerError(
      `Expected nested arrays of one shape at '${path}', got [${first}] in the first place and [${rest[odd]}] in place ${odd + 1}.`,
    );
  return [value.length, ...first!];
}

/** The array behind a leaf; undefined for containers and plain values. */
function arrayLeaf(value: unknown, path: string): ArrayLeaf | undefined {
  if (isTensor(value)) {
    const { dtype, shape } = value;
    if (!DTYPES.includes(dtype))
      throw new CompilerError(
        `Expected float32, int32 or bool at '${path}', got a tensor of dtype ${dtype}.`,
      );
    const values = value.data();
    // The awaiting caller gets the error; if compiling fails first, nothing awaits it.
    values.catch(() => {});
    return { path, spec: { shape, dtype: dtype as DType }, values };
  }
  if (ArrayBuffer.isView(value)) {
    const values = typedValues(value, path);
    const dtype = values instanceof Float32Array ? 'float32' : 'int32';
    return { path, spec: { shape: [values.length], dtype }, values };
  }
  if (typeof value === 'number' || (Array.isArray(value) && isNumbers(value))) {
    const shape = shapeOf(value, path);
    const flat = (Array.isArray(value) ? value.flat(shape.length as 1) : [value]) as (number | boolean)[];
    const isBool = flat.every((item) => typeof item === 'boolean');
    return isBool
      ? { path, spec: { shape, dtype: 'bool' }, values: Uint8Array.from(flat, Number) }
      : { path, spec: { shape, dtype: 'float32' }, values: Float32Array.from(flat, Number) };
  }
  if (typeof value !== 'object' || value === null || !isHostTensor(value)) return undefined;
  return { path, spec: { shape: value.shape, dtype: value.dtype }, values: value.data };
}

/** Bytes are integers, as tfjs takes them. */
function typedValues(array: ArrayBufferView, path: string): Float32Array | Int32Array {
  if (array instanceof Float32Array || array instanceof Int32Array) return array;
  if (array instanceof Uint8Array || array instanceof Uint8ClampedArray) return Int32Array.from(array);
  throw new CompilerError(
    `Expected a Float32Array, Int32Array, Uint8Array or Uint8ClampedArray at '${path}', got ${array.constructor.name}.`,
  );
}

const isPlain = (value: unknown): boolean =>
  value === null || value === undefined || ['string', 'boolean', 'number'].includes(typeof value);

/** A tree without its leaves: `make` puts leaves in order back in their places. */
interface Skeleton {
  readonly signature: string;
  make(next: () => unknown): unknown;
}

/** Walks a tree; `leaf` gives the signature of a leaf, undefined for other nodes. */
function skeleton(
  value: unknown,
  path: string,
  leaf: (value: unknown, path: string) => string | undefined,
): Skeleton {
  const taken = leaf(value, path);
  if (taken !== undefined) return { signature: taken, make: (next) => next() };
  if (isPlain(value)) return { signature: JSON.stringify(value) ?? 'undefined', make: () => value };
  if (Array.isArray(value)) {
    const items = value.map((item, i) => skeleton(item, `${path}[${i}]`, leaf));
    return {
      signature: `[${items.map((item) => item.signature)}]`,
      make: (next) => items.map((item) => item.make(next)),
    };
  }
  if (typeof value !== 'object' || value instanceof Promise || value === null)
    throw new CompilerError(
      value instanceof Promise
        ? `Got a promise at '${path}': a function is traced in one synchronous call. Await before it is compiled, and pass the result as an argument.`
        : `Expected a tensor, an array, a number, or a structure of them at '${path}', got ${typeof value}.`,
    );
  const fields = Object.entries(value).map(
    ([key, item]) => [key, skeleton(item, `${path}.${key}`, leaf)] as const,
  );
  return {
    signature: `{${fields.map(([key, { signature }]) => `${JSON.stringify(key)}:${signature}`)}}`,
    make: (next) => Object.fromEntries(fields.map(([key, { make }]) => [key, make(next)])),
  };
}

const inOrder = <T>(items: readonly T[]): (() => T) => {
  let next = 0;
  return () => items[next++]!;
};

/** Reads the arguments of a call. Typed arrays are not copied. */
export function readArguments(given: readonly unknown[]): Arguments {
  const arrays: ArrayLeaf[] = [];
  let hasTensors = false;
  const whole = skeleton(given, 'arguments', (value, path) => {
    // The list of arguments is not itself an argument.
    const found = value === given ? undefined : arrayLeaf(value, path);
    if (found === undefined) return undefined;
    hasTensors ||= isTensor(value);
    arrays.push(found);
    return `${found.spec.dtype}(${found.spec.shape})`;
  });
  return {
    arrays,
    signature: whole.signature,
    givesTensors: hasTensors || arrays.length === 0,
    rebuild: (tensors) => whole.make(inOrder(tensors)) as unknown[],
  };
}

/** Results of a function: its tensors in order, and their structure. */
export interface Results {
  readonly tensors: readonly Tensor[];
  rebuild(leaves: readonly unknown[]): unknown;
}

export function readResults(given: unknown): Results {
  const tensors: Tensor[] = [];
  const whole = skeleton(given, 'result', (value) => {
    return isTensor(value) ? `${tensors.push(value)}` : undefined;
  });
  return { tensors, rebuild: (leaves) => whole.make(inOrder(leaves)) };
}
