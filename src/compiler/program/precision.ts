/**
 * @file Precisions of matrix products: to what they round their operands. Their sums, and all other operations, are
 * float32.
 */
import type { Attrs } from './ir.js';
import { narrow, widen } from './narrowStorage.js';
import { arrayTypeOf, type NarrowFloat } from './tensors.js';

/** How products treat their operands. */
interface PrecisionRecord {
  /** Storage to whose values they are rounded, to nearest even, on every CPU; absent: they stay float32. */
  readonly operands?: NarrowFloat;
}

const TABLE = {
  float32: {},
  bfloat16: { operands: 'bfloat16' },
} satisfies Record<string, PrecisionRecord>;

/** Operand precision of matrix products. */
export type Precision = keyof typeof TABLE;

/**
 * All precisions; nothing else tells them apart by name. Engines multiply rounded operands in float32, or have kernels of
 * their own for a precision, as native/c/productKernels.ts lists.
 */
export const PRECISIONS: Readonly<Record<Precision, PrecisionRecord>> = TABLE;

/** Their names, the default first. */
export const PRECISION_NAMES = Object.keys(PRECISIONS) as [Precision, ...Precision[]];
export const [DEFAULT_PRECISION] = PRECISION_NAMES;

/** Storage that holds a product's rounded operands exactly; undefined for float32's own. */
export const operandStorage = (precision: Precision): NarrowFloat | undefined =>
  PRECISIONS[precision].operands;

/** Bytes of a rounded operand in memory. */
export const operandBytes = (precision: Precision): number => {
  const storage = operandStorage(precision);
  return arrayTypeOf({ dtype: 'float32', ...(storage && { storage }) }).BYTES_PER_ELEMENT;
};

let current: Precision = DEFAULT_PRECISION;

/** The precision of the products being called. */
export function currentPrecision(): Precision {
  return current;
}

/**
 * Runs `f` with products of this precision. Code outside of the compiler uses `withPrecision`, which also prepares
 * tfjs's backends.
 */
export function runInPrecision<T>(precision: Precision, f: () => T): T {
  const outer = current;
  current = precision;
  try {
    return f();
  } finally {
    current = outer;
  }
}

/** Precision of a node or an operation's attributes; the default if absent. */
export function precisionOf(attrs: Attrs): Precision {
  return (attrs.precision as Precision | undefined) ?? DEFAULT_PRECISION;
}

/** The canonical attribute of a product: the caller's choice, else the current precision. */
export function precisionAttr(raw: { readonly precision?: Precision }): Attrs {
  const { precision = current } = raw;
  return precision === DEFAULT_PRECISION ? {} : { precision };
}

/** Precision by the attributes object that tfjs passes to a kernel, and later to its gradient. */
const ofCalls = new WeakMap<object, Precision>();

/** Remembers the precision of a call for its gradient, which tfjs computes after the layer has returned. */
export function notePrecision(attrs: object | undefined): void {
  if (attrs !== undefined && current !== DEFAULT_PRECISION) ofCalls.set(attrs, current);
}

/** The precision remembered by `notePrecision`. */
export function notedPrecision(attrs: object): Precision {
  return ofCalls.get(attrs) ?? DEFAULT_PRECISION;
}

/** Values as products of a precision round them; the values themselves where it leaves them as they are. */
export function roundOperand(values: Float32Array, precision: Precision): Float32Array {
  const storage = operandStorage(precision);
  return storage === undefined ? values : (widen(narrow(values, storage), storage) as Float32Array);
}
