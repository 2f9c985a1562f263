/** @file Scales of blocks as float16. */
import { narrow, widen } from '../../compiler/index.js';

/** Values by their bits, once they are needed: reading looks up one or two a block. */
let values: Float32Array | undefined;

/** The float16 at a byte. */
export function halfAt(bytes: Uint8Array, at: number): number {
  values ??= widen(
    Uint16Array.from({ length: 1 << 16 }, (_, bits) => bits),
    'float16',
  ) as Float32Array;
  return values[bytes[at]! | (bytes[at + 1]! << 8)]!;
}

/** Writes a number as the nearest float16. @returns the number that is read back */
export function putHalf(bytes: Uint8Array, at: number, value: number): number {
  const [bits] = narrow(Float32Array.of(value), 'float16');
  bytes[at] = bits! & 255;
  bytes[at + 1] = bits! >> 8;
  return halfAt(bytes, at);
}
