/** @file Words of counter-based random numbers on the host: values depend only on key and position. */

/**
 * A bijection of 32-bit words with little bias (Ellis, "Hash function prospector": lowbias32). It uses only shifts, xor
 * and multiplication, so that every lowering can vectorise it.
 */
export function mix32(word: number): number {
  let x = word | 0;
  x ^= x >>> 16;
  x = Math.imul(x, MIX_1);
  x ^= x >>> 15;
  x = Math.imul(x, MIX_2);
  return x ^ (x >>> 16);
}

/** The multipliers of mix32, as signed words. */
export const MIX_1 = 0x7feb352d | 0;
export const MIX_2 = 0x846ca68b | 0;

/** The two words by which `data` enters a key. */
export function foldWords(data: number): [number, number] {
  return [mix32((data + 0x9e3779b9) | 0), mix32(data ^ 0x85ebca6b)];
}

/** Derives a key from `key` and `data` on the host, like the traced FoldIn. */
export function foldInHost(key: ArrayLike<number>, data: number): [number, number] {
  const [d0, d1] = foldWords(data);
  const k0 = mix32(key[0]! ^ d0);
  return [k0, mix32((key[1]! + k0 + d1) | 0)];
}

/** The words at positions 0 … size - 1 of a key's stream. */
export function randomWords(key: ArrayLike<number>, size: number): Uint32Array {
  const words = new Uint32Array(size);
  const [k0, k1] = [key[0]!, key[1]!];
  for (let i = 0; i < size; i++) words[i] = mix32(mix32((i + k0) | 0) ^ k1);
  return words;
}

/** A number of each word of a key's stream. A loop: callbacks of `from` take ten times as long. */
export function numbersOf(
  key: ArrayLike<number>,
  size: number,
  ofWord: (word: number) => number,
): Float32Array {
  const words = randomWords(key, size);
  const numbers = new Float32Array(size);
  for (let i = 0; i < size; i++) numbers[i] = ofWord(words[i]!);
  return numbers;
}
