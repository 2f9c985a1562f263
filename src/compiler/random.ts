/** @file Counter-based randomness: a value depends on key and counter alone, never on what was drawn before. */

/** A key: two unsigned 32-bit words. */
export type PrngKey = readonly [number, number];

const PARITY = 0x1bd11bda;

const rotate = (word: number, by: number): number => (word << by) | (word >>> (32 - by));

/**
 * Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * @param key two unsigned 32-bit words.
 * @param counter two unsigned 32-bit words.
 * @returns two unsigned 32-bit words that look random.
 */
export function threefry2x32(key: PrngKey, counter: readonly [number, number]): [number, number] {
  const out: [number, number] = [0, 0];
  threefryInto(key[0], key[1], counter[0], counter[1], out, 0);
  return out;
}

/** As `threefry2x32`, writing its words to out[at] and out[at + 1]: bulk draws allocate nothing. */
function threefryInto(
  k0: number,
  k1: number,
  c0: number,
  c1: number,
  out: Uint32Array | [number, number],
  at: number,
): void {
  // The three key words take turns; locals instead of an array keep the loop free of memory.
  let [now, next, later] = [k0, k1, k0 ^ k1 ^ PARITY];
  let x0 = (c0 + k0) | 0;
  let x1 = (c1 + k1) | 0;
  for (let group = 1; group <= 5; group++) {
    const odd = (group & 1) === 1;
    x0 = (x0 + x1) | 0;
    x1 = rotate(x1, odd ? 13 : 17) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotate(x1, odd ? 15 : 29) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotate(x1, odd ? 26 : 16) ^ x0;
    x0 = (x0 + x1) | 0;
    x1 = rotate(x1, odd ? 6 : 24) ^ x0;
    const first = now;
    now = next;
    next = later;
    later = first;
    x0 = (x0 + now) | 0;
    x1 = (x1 + next + group) | 0;
  }
  out[at] = x0 >>> 0;
  out[at + 1] = x1 >>> 0;
}

/**
 * The key of a seed: its high and its low 32 bits.
 *
 * @param seed a safe integer, 0 or more.
 */
export function prngKey(seed: number): PrngKey {
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new RangeError(`prngKey: a seed is an integer from 0 to 2^53 - 1, got ${seed}.`);
  }
  return [Math.floor(seed / 2 ** 32), seed >>> 0];
}

/** A new key from a key and an integer (a step, a row, a hash); integers up to 2^53 count in full. */
export function foldIn(key: PrngKey, data: number): PrngKey {
  return threefry2x32(key, [Math.floor(data / 2 ** 32) >>> 0, data >>> 0]);
}

/** 32-bit FNV-1a of the UTF-8 bytes of a text, unsigned. */
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
  for (let i = 0; i < count; i += 2) threefryInto(key[0], key[1], 0, i >>> 1, bits, i);
  return bits.subarray(0, count);
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
