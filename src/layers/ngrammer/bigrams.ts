/** @file Bigrams: pairs of each id with the one before, hashed into a smaller vocabulary (praxis/layers/ngrammer.py). */
import { type Tensor, tf } from '../../compiler/index.js';

/** Pairs are hashed as ((pair · factor + factor) mod prime) mod buckets. */
export interface PairHash {
  readonly factor: number;
  readonly prime: number;
  readonly buckets: number;
}

/** Primes p < 2^24 leave room for a digit of 6 bits and more beside them in int32. */
export const MOST_BUCKETS = 2 ** 23;

/** The first `count` primes above `buckets` and below twice that, or fewer where there are not so many. */
export function primesAbove(buckets: number, count: number): number[] {
  const primes: number[] = [];
  for (let n = buckets + 1; n < 2 * buckets && primes.length < count; n++) if (isPrime(n)) primes.push(n);
  return primes;
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return n > 1;
}

const int = (x: number): Tensor => tf.scalar(x, 'int32');

/**
 * x · factor mod prime of int32 x from 0 to prime - 1: digit by digit of the factor, so that no product leaves int32.
 *
 * @param factor from 0 to prime - 1.
 */
function timesModulo(x: Tensor, factor: number, prime: number): Tensor {
  // r · base + x · digit < 2 · prime · base <= 2^31.
  const base = 2 ** (30 - Math.ceil(Math.log2(prime)));
  const digits: number[] = [];
  for (let rest = factor; rest > 0; rest = Math.floor(rest / base)) digits.unshift(rest % base);
  return digits.reduce<Tensor>(
    (r, digit) => tf.mod(tf.add(tf.mul(r, int(base)), tf.mul(x, int(digit))), int(prime)),
    tf.zerosLike(x),
  );
}

/**
 * Hashed pairs id + before · vocabSize, int32 from 0 to buckets - 1. All terms are reduced modulo the prime one by one, so that
 * pairs beyond int32 have their exact hashes.
 *
 * @param ids, @param before int32 [...], from 0 to vocabSize - 1.
 */
export function hashedPairs(
  ids: Tensor,
  before: Tensor,
  vocabSize: number,
  { factor, prime, buckets }: PairHash,
): Tensor {
  const reduced = (x: Tensor): Tensor => (vocabSize > prime ? tf.mod(x, int(prime)) : x);
  const term = (x: Tensor, by: number): Tensor => timesModulo(reduced(x), by % prime, prime);
  const pair = tf.add(term(ids, factor), term(before, (factor % prime) * (vocabSize % prime)));
  const hash = tf.mod(tf.add(pair, int(factor % prime)), int(prime));
  return tf.mod(hash, int(buckets));
}

/** The tokens of a sequence that are in pairs. */
export interface PairArgs {
  /** int32 [B, T]: positions within sequences; the first token of each has none before. Places in the row where absent. */
  readonly segmentPos?: Tensor | undefined;
  /** [B, T], 1 for padding, which is in no pair. */
  readonly paddings?: Tensor | undefined;
}

/** `x` [B, T, ...] one place later, behind `first` [B, 1, ...]. */
export function delayed(x: Tensor, first: Tensor): Tensor {
  const [batch, time, ...rest] = x.shape as [number, number, ...number[]];
  return tf.concat([first, tf.slice(x, [0, 0, ...rest.map(() => 0)], [batch, time - 1, ...rest])], 1);
}

/**
 * The id before each, int32 of the shape of `ids`: 0 for the first token of a sequence, and behind padding.
 *
 * @param ids int32 [B, T, N].
 * @param first int32 [B, N]: the ids before the first place of the row.
 */
export function idsBefore(ids: Tensor, first: Tensor, { segmentPos, paddings }: PairArgs): Tensor {
  const chosen = (mask: Tensor, x: Tensor): Tensor =>
    tf.where(tf.expandDims(mask, -1), x, tf.zerosLike(x)) as Tensor;
  const kept = paddings ? chosen(tf.less(paddings, 0.5) as Tensor, ids) : ids;
  const before = delayed(kept, tf.expandDims(first, 1));
  return segmentPos ? chosen(tf.greater(segmentPos, int(0)) as Tensor, before) : before;
}

/**
 * The value of the last of `length` tokens, or of all: the one before the next token.
 *
 * @param before [B, ...]: the value before the first of them. @param x [B, T, ...].
 */
export function lastOf(before: Tensor, x: Tensor, length: Tensor | undefined): Tensor {
  const [batch, time, ...rest] = x.shape as [number, number, ...number[]];
  const all = tf.reshape(tf.concat([tf.expandDims(before, 1), x], 1), [batch * (time + 1), ...rest]);
  const last = length
    ? tf.broadcastTo(tf.reshape(length, [length.size]), [batch])
    : tf.fill([batch], time, 'int32');
  const rows = tf.mul(tf.range(0, batch, 1, 'int32'), int(time + 1));
  return tf.gather(all, tf.add(rows, last) as tf.Tensor1D);
}
