/** @file Counter-based randomness: a value depends only on key and counter, never on earlier draws. */

/** A key: two unsigned 32-bit words. */
export type PrngKey = readonly [number, number];

const PARITY = 0x1bd11bda;

/**
 * Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * @param key two unsigned 32-bit words.
 * @param counter two unsigned 32-bit words.
 * @returns two unsigned 32-bit words that look random.
 */
export function threefry2x32(key: PrngKey, counter: readonly [number, number]): [number, number] {
  threefryInto(key, counter[0], counter[1], block);
  return [block[0]!, block[1]!];
}

/** The words of `threefry2x32`, on their way: one array for all is much cheaper than one each. */
const block = new Uint32Array(2);

/** Threefry words of the counters [high, low], [high, low + 1], … as many as fit. Unrolled, which halves the time. */
function threefryInto([k0, k1]: PrngKey, high: number, low: number, out: Uint32Array): void {
  const k2 = k0 ^ k1 ^ PARITY;
  for (let at = 0; at < out.length; at += 2) {
    let x0 = (high + k0) | 0;
    let x1 = (low + (at >>> 1) + k1) | 0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 13) | (x1 >>> 19)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 15) | (x1 >>> 17)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 26) | (x1 >>> 6)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 6) | (x1 >>> 26)) ^ x0;
    x0 = (x0 + k1) | 0;
    x1 = (x1 + k2 + 1) | 0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 17) | (x1 >>> 15)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 29) | (x1 >>> 3)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 16) | (x1 >>> 16)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 24) | (x1 >>> 8)) ^ x0;
    x0 = (x0 + k2) | 0;
    x1 = (x1 + k0 + 2) | 0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 13) | (x1 >>> 19)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 15) | (x1 >>> 17)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 26) | (x1 >>> 6)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 6) | (x1 >>> 26)) ^ x0;
    x0 = (x0 + k0) | 0;
    x1 = (x1 + k1 + 3) | 0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 17) | (x1 >>> 15)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 29) | (x1 >>> 3)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 16) | (x1 >>> 16)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 24) | (x1 >>> 8)) ^ x0;
    x0 = (x0 + k1) | 0;
    x1 = (x1 + k2 + 4) | 0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 13) | (x1 >>> 19)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 15) | (x1 >>> 17)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 26) | (x1 >>> 6)) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = ((x1 << 6) | (x1 >>> 26)) ^ x0;
    x0 = (x0 + k2) | 0;
    x1 = (x1 + k0 + 5) | 0;
    out[at] = x0;
    out[at + 1] = x1;
  }
}

/**
 * The key of a seed: its high and low 32 bits.
 *
 * @param seed a safe integer, 0 or more.
 */
export function prngKey(seed: number): PrngKey {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new RangeError(`prngKey: expected an integer seed from 0 to 2^53 - 1, got ${seed}.`);
  }
  return [Math.floor(seed / 2 ** 32), seed >>> 0];
}

/** Derives a key from a key and an integer (a step, a row, a hash); integers up to 2^53 count in full. */
export function foldIn(key: PrngKey, data: number): PrngKey {
  return threefry2x32(key, [Math.floor(data / 2 ** 32) >>> 0, data >>> 0]);
}

/** Unsigned 32-bit FNV-1a of a text's UTF-8 bytes. */
export function hashString(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/**
 * `count` unsigned 32-bit words: words 2i and 2i + 1 are those of counter [0, i].
 *
 * @returns shape [count].
 */
export function randomBits(key: PrngKey, count: number): Uint32Array {
  const bits = new Uint32Array(count + (count & 1));
  threefryInto(key, 0, 0, bits);
  return bits.subarray(0, count);
}

/** Words `first`, `first + 1`, … of the sequence of `randomBits`; `first` and the length of `out` are even. */
export function randomBitsInto(key: PrngKey, first: number, out: Uint32Array): void {
  threefryInto(key, 0, first / 2, out);
}

/** A word as a float32 in [0, 1): its 24 high bits, so that every value is exact. */
export const bitsToUniform = (bits: number): number => (bits >>> 8) * 2 ** -24;

/**
 * `count` numbers, uniform in [0, 1).
 *
 * @returns shape [count].
 */
export function uniform(key: PrngKey, count: number): Float32Array {
  const bits = randomBits(key, count);
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = bitsToUniform(bits[i]!);
  return values;
}
