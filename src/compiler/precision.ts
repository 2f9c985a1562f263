/**
 * @file The precision in which matrix products multiply. In bfloat16 their operands are rounded to nearest even and
 * their sums are float32, with or without an instruction for it; all other operations are float32 throughout.
 */
import type { Attrs } from './ir.js';

/** How matrix products take their operands. */
export type Precision = 'float32' | 'bfloat16';

let current: Precision = 'float32';

/** The precision of the products that are called now. */
export function currentPrecision(): Precision {
  return current;
}

/** Runs `f` with products of this precision. Callers outside of the compiler take `withPrecision`, which prepares tfjs's backends. */
export function runInPrecision<T>(precision: Precision, f: () => T): T {
  const outer = current;
  current = precision;
  try {
    return f();
  } finally {
    current = outer;
  }
}

/** Of a node or of an operation's attributes; absent, it is float32. */
export function precisionOf(attrs: Attrs): Precision {
  return (attrs.precision as Precision | undefined) ?? 'float32';
}

/** The canonical attribute of an operation that multiplies: what the caller says, else the precision around the call. */
export function precisionAttr(raw: { readonly precision?: Precision }): Attrs {
  return (raw.precision ?? current) === 'bfloat16' ? { precision: 'bfloat16' } : {};
}

/** By the attributes that tfjs hands to an operation's kernel, and later to its gradient. */
const ofCalls = new WeakMap<object, Precision>();

/** Keeps the precision of a call for its gradient, which tfjs works out after the layer that called has returned. */
export function notePrecision(attrs: object | undefined): void {
  if (attrs !== undefined && current !== 'float32') ofCalls.set(attrs, current);
}

/** What `notePrecision` kept. */
export function notedPrecision(attrs: object): Precision {
  return ofCalls.get(attrs) ?? 'float32';
}

/** The elements rounded to bfloat16, to nearest even; NaN stays NaN. */
export function roundToBfloat16(values: Float32Array): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const rounded = new Float32Array(values.length);
  const result = new Uint32Array(rounded.buffer);
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]!;
    const notANumber = (word & 0x7fffffff) > 0x7f800000;
    // Rounding would carry a NaN of low bits only over into infinity, or into a zero of the other sign.
    result[i] = (notANumber ? word | 0x00400000 : word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000;
  }
  return rounded;
}
