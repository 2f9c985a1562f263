/** @file Random numbers in bulk: the formulas by Math's functions, whatever the length; the same bits from machine code. */
import { describe, expect, test } from 'vitest';
import {
  type Draw,
  type Engine,
  fillNow,
  fillRandom,
  type PrngKey,
  prngKey,
} from '../../../src/compiler/index.js';
import { bitsToUniform, randomBits } from '../../../src/compiler/random/prng.js';
import { hasCompiler } from '../native/compilerSupport.js';

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

const counts = [0, 1, 2, 5, 4095, 4096, 4097, 8193, 300_001];

test.each(counts)('%i normal numbers', (count) => {
  const out = new Float32Array(count);
  fillNow({ kind: 'normal', key: prngKey(count), scale: 0.02, out });
  const expected = expectedNormal(prngKey(count), 0.02, count);
  // Where the double lies between two float32, an error in its last bit may choose the other.
  const words = new Int32Array(expected.slice().buffer);
  const steps = new Int32Array(out.buffer).map((word, i) => Math.abs(word - words[i]!));
  expect(steps.filter((step) => step > 1)).toHaveLength(0);
  expect(steps.filter((step) => step === 1).length).toBeLessThanOrEqual(1);
});

test.each(counts)('%i uniform numbers', (count) => {
  const out = new Float32Array(count);
  fillNow({ kind: 'uniform', key: prngKey(count), scale: 0.3, out });
  const bits = randomBits(prngKey(count), count);
  const expected = Float32Array.from(bits, (word) => 0.3 * (2 * bitsToUniform(word) - 1));
  expect(differences([out], [expected])).toEqual([]);
});

const kinds = ['uniform', 'normal', 'constant'] as const;

/** Arrays of all lengths and distributions, side by side in one buffer that ends in zeros, and one that is large. */
function manyDraws(): { draws: Draw[]; buffers: Float32Array[] } {
  const lengths = [...Array.from({ length: 70 }, (_, i) => i), 1023, 1024, 1025, 2047, 65_535, 65_537];
  const small = new Float32Array(lengths.reduce((sum, length) => sum + length, 100));
  let end = 0;
  const draws = lengths.map((length, i): Draw => {
    const out = small.subarray(end, (end += length));
    return { kind: kinds[i % 3]!, key: prngKey(2 ** 40 + i), scale: 10 ** (i % 5), out };
  });
  const large = new Float32Array(1_234_567);
  draws.push({ kind: 'normal', key: prngKey(3), scale: 0.02, out: large });
  return { draws, buffers: [small, large] };
}

/** The places where two lists of arrays differ in a bit, as many as a message can show. */
function differences(found: readonly Float32Array[], expected: readonly Float32Array[]): string[] {
  return expected.flatMap((array, which) => {
    const [a, b] = [found[which]!, array].map(({ buffer }) => new Uint32Array(buffer)) as [
      Uint32Array,
      Uint32Array,
    ];
    return [...b.keys()]
      .filter((i) => a[i] !== b[i])
      .slice(0, 3)
      .map((i) => `${which}: [${i}] ${a[i]} ${b[i]}`);
  });
}

async function filled(engine: Engine, numThreads?: number): Promise<Float32Array[]> {
  const { draws, buffers } = manyDraws();
  await fillRandom(draws, { engine, numThreads });
  return buffers;
}

describe.skipIf(!hasCompiler)('machine code', () => {
  test.each([undefined, 1, 2, 3])('%s threads give the same bits', async (numThreads) => {
    expect(differences(await filled('native', numThreads), await filled('onnx'))).toEqual([]);
  });
});
