/** @file Normal numbers in bulk: the formula by Math's functions, whatever the length, and every quarter of the circle. */
import { expect, test } from 'vitest';
import { type PrngKey, prngKey } from '../../src/compiler/index.js';
import { randomBits } from '../../src/compiler/random.js';
import { fillNormal } from '../../src/layers/normal.js';

/** Box and Muller's formula in double precision, rounded once. */
function expectedNormal(key: PrngKey, scale: number, count: number): Float32Array {
  const bits = randomBits(key, count + (count & 1));
  const values = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i += 2) {
    const radius = Math.sqrt(-2 * Math.log((bits[i]! + 0.5) * 2 ** -32));
    const angle = 2 * Math.PI * (bits[i + 1]! * 2 ** -32);
    values[i] = scale * (radius * Math.cos(angle));
    values[i + 1] = scale * (radius * Math.sin(angle));
  }
  return values.subarray(0, count);
}

test.each([0, 1, 2, 5, 4095, 4096, 4097, 8193, 300_001])('%i numbers', (count) => {
  const found = new Float32Array(count);
  fillNormal(prngKey(count), 0.02, found);
  const expected = expectedNormal(prngKey(count), 0.02, count);
  // Where the double lies between two float32, an error in its last bit may choose the other.
  const words = new Int32Array(expected.slice().buffer);
  const steps = new Int32Array(found.buffer).map((word, i) => Math.abs(word - words[i]!));
  expect(steps.filter((step) => step > 1)).toHaveLength(0);
  expect(steps.filter((step) => step === 1).length).toBeLessThanOrEqual(1);
});
