/**
 * @file Precision of matrix products. bfloat16 rounds operands to nearest even and sums in float32, on every CPU; all
 * other operations are float32.
 */
import type { Attrs } from './ir.js';

/** Operand precision of matrix products. */
export type Precision = 'float32' | 'bfloat16';

let current: Precision = 'float32';

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

/** Precision of a node or an operation's attributes; float32 if absent. */
export function precisionOf(attrs: Attrs): Precision {
  return (attrs.precision as Precision | undefined) ?? 'float32';
}

/** The canonical attribute of a product: the caller's choice, else the current precision. */
export function precisionAttr(raw: { readonly precision?: Precision }): Attrs {
  return (raw.precision ?? current) === 'bfloat16' ? { precision: 'bfloat16' } : {};
}

/** Precision by the attributes object that tfjs passes to a kernel, and later to its gradient. */
const ofCalls = new WeakMap<object, Precision>();

/** Remembers the precision of a call for its gradient, which tfjs computes after the layer has returned. */
export function notePrecision(attrs: object | undefined): void {
  if (attrs !== undefined && current !== 'float32') ofCalls.set(attrs, current);
}

/** The precision remembered by `notePrecision`. */
export function notedPrecision(attrs: object): Precision {
  return ofCalls.get(attrs) ?? 'float32';
}

/** Rounds elements to bfloat16, to nearest even; NaN stays NaN. */
export function roundToBfloat16(values: Float32Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const rounded = new Float32Array(values.length);
  const result = new Uint32Array(rounded.buffer);
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]!;
    const notANumber = (word & 0x7fffffff) > 0x7f800000;
    // Rounding would carry a NaN with only low bits into infinity or a zero.
    result[i] = (notANumber ? word | 0x00400000 : word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000;
  }
  return rounded;
}
