/** @file Counter-based random numbers inside programs: values depend only on key and position. */

import { bitsToUniform } from '../prng.js';
import { defineOp } from '../rules/index.js';
import { expects, expectsShape, perOutputElement, spec } from '../rules/rule.js';
import { CompilerError, type Shape, sameShape, type TensorSpec } from '../tensors.js';
import * as tf from '../tfjs.js';
import { isTracing, recordOp } from '../tracing.js';

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

/** Uniform numbers in [0, 1) on the host, like the traced RandomUniform. */
export const randomUniformHost = (key: ArrayLike<number>, size: number): Float32Array =>
  numbersOf(key, size, bitsToUniform);

export const expectsKey = (key: TensorSpec): void =>
  expects(key.dtype === 'int32' && sameShape(key.shape, [2]), 'a key int32[2]', key);

defineOp('RandomUniform', {
  inputs: ['key'],
  attrs: (raw) => ({ shape: [...raw.shape] }),
  infer: ([key], { shape }) => {
    expectsKey(key!);
    expectsShape(shape);
    return [spec(shape, 'float32')];
  },
  flops: perOutputElement(12),
});

defineOp('FoldIn', {
  inputs: ['key'],
  attrs: (raw) => ({ data: raw.data }),
  infer: ([key]) => {
    expectsKey(key!);
    return [spec([2], 'int32')];
  },
});

/**
 * Uniform float32 numbers in [0, 1), each a multiple of 2^-24.
 *
 * @param key int32 [2].
 */
export function randomUniform(key: tf.Tensor, shape: Shape): tf.Tensor {
  if (isTracing()) return recordOp('RandomUniform', [key], { shape })[0]!;
  const size = tf.util.sizeFromShape([...shape]);
  return tf.tensor(randomUniformHost(key.dataSync(), size), [...shape]);
}

/**
 * Derives a key that is independent of `key` and of every other `data`.
 *
 * @param key int32 [2]. @param data an integer, taken modulo 2^32.
 * @returns int32 [2].
 */
export function foldIn(key: tf.Tensor, data: number): tf.Tensor {
  if (isTracing()) return recordOp('FoldIn', [key], { data: data | 0 })[0]!;
  return tf.tensor1d(foldInHost(key.dataSync(), data | 0), 'int32');
}

/**
 * Zeroes elements with probability 1 - keepProb and divides the rest by keepProb (Srivastava et al., 2014).
 *
 * @param x float32 of any shape. @param key int32 [2]. @param keepProb in (0, 1].
 */
export function dropout(x: tf.Tensor, key: tf.Tensor, keepProb: number): tf.Tensor {
  if (!(keepProb > 0 && keepProb <= 1)) {
    throw new CompilerError(`dropout: expected keepProb in (0, 1], got ${keepProb}.`);
  }
  if (keepProb === 1) return x;
  const kept = tf.cast(tf.less(randomUniform(key, x.shape), keepProb), 'float32');
  return tf.mul(x, tf.mul(kept, 1 / keepProb));
}
