/** @file Counter-based draws for inputs: the n-th draw of a stream has no state but n. */

import { foldIn, type PrngKey, prngKey, randomBits, threefry2x32 } from '../compiler/random/index.js';

/** Purposes of random streams under one seed. The epoch is added, for which each purpose has room up to the next. */
export const PURPOSES = {
  /** Synthetic tokens. */
  tokens: 0,
  /** Order of numbered rows. */
  rowOrder: 2 ** 40,
  /** Where the windows of an epoch of text begin. */
  windowPhase: 2 ** 41,
  /** Windows of text at random offsets. */
  windowOffset: 2 ** 42,
  /** Items held out. */
  split: 2 ** 43,
  /** Shuffle buffer of a stream. */
  streamShuffle: 2 ** 44,
  /** Order of a task's records. */
  taskOrder: 2 ** 45,
  /** Preprocessing of a task's records. */
  taskExamples: 2 ** 46,
  /** Choice of the tasks of a mixture. */
  taskMixing: 2 ** 47,
  /** Order of packed rows. */
  packedRows: 2 ** 48,
  /** Augmentations and mixtures of images. */
  augmentation: 2 ** 49,
  /** Crops of sounds. */
  soundCrop: 2 ** 50,
  /** Choice among interleaved inputs. */
  whichInput: 2 ** 51,
} as const;

/** The key of a purpose's stream under a user's `seed` (0 or more), in an epoch where each has its own. */
export function streamKey(seed: number, purpose: keyof typeof PURPOSES, epoch = 0): PrngKey {
  return foldIn(prngKey(seed), PURPOSES[purpose] + epoch);
}

/** Scales two words to an integer in [0, bound); the bias is below bound / 2^53. */
function scale(high: number, low: number, bound: number): number {
  return Math.floor(((high * 2 ** 21 + (low >>> 11)) / 2 ** 53) * bound);
}

/** Draw number `counter` (0 or more) of a stream: an integer, uniform in [0, bound). */
export function drawBelow(key: PrngKey, counter: number, bound: number): number {
  const [high, low] = threefry2x32(key, [Math.floor(counter / 2 ** 32) >>> 0, counter >>> 0]);
  return scale(high, low, bound);
}

/** A random order of 0 … size − 1. */
export interface RandomOrder {
  readonly size: number;
  at(place: number): number;
}

/** Random orders, determined by a key, under the names by which states record them. */
export const RANDOM_ORDERS = {
  'keyed permutation': (key: PrngKey, size: number): RandomOrder => new KeyedPermutation(key, size),
  /** In memory; of states that name none, for those before them had no other. */
  'Fisher-Yates': shuffled,
};

export type RandomOrderName = keyof typeof RANDOM_ORDERS;

function shuffled(key: PrngKey, size: number): RandomOrder {
  const bits = randomBits(key, 2 * size);
  const order = new Uint32Array(size);
  for (let i = 0; i < size; i++) {
    const j = scale(bits[2 * i]!, bits[2 * i + 1]!, i + 1);
    order[i] = order[j]!;
    order[j] = i;
  }
  return { size, at: (place) => order[place]! };
}

/** Rounds of the network: enough that places of large orders look independent, and more where a digit has few values. */
const roundsFor = (size: number): number => (size < 2 ** 16 ? 12 : 6);

/**
 * A random order of 0 … size − 1, determined by `key`, that takes no memory: a Feistel network on pairs (Black and
 * Rogaway, "Ciphers with arbitrary finite domains", 2002). A number is a pair of digits in the base √size, rounded up;
 * each round adds a hash of one digit to the other. Numbers outside of the range go through the network again (cycle
 * walking).
 */
export class KeyedPermutation implements RandomOrder {
  readonly size: number;
  readonly #base: number;
  readonly #keys: Uint32Array;

  /** @param size at most 2^52. @throws RangeError for a larger one */
  constructor(key: PrngKey, size: number) {
    if (!(size <= 2 ** 52))
      throw new RangeError(`KeyedPermutation: expected at most 2^52 items, got ${size}.`);
    this.size = size;
    this.#base = Math.ceil(Math.sqrt(size));
    this.#keys = randomBits(key, 2 * roundsFor(size));
  }

  /** The item at a place, both from 0 to size − 1. */
  at(place: number): number {
    const keys = this.#keys;
    const base = this.#base;
    const scale = base * 2 ** -32;
    let item = place;
    do {
      let high = (item / base) | 0;
      let low = (item - high * base) | 0;
      for (let round = 0; round < keys.length; round += 2) {
        const sum = high + ((hash(low, keys[round]!, keys[round + 1]!) * scale) | 0);
        high = low;
        low = sum < base ? sum : sum - base;
      }
      item = high * base + low;
    } while (item >= this.size);
    return item;
  }
}

/** A hash of a word under two keys, from 0 to 2^32 − 1; the multipliers are those of Wellons' lowbias32. */
function hash(word: number, key0: number, key1: number): number {
  let bits = word ^ key0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) ^ key1;
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b);
  return (bits ^ (bits >>> 16)) >>> 0;
}
