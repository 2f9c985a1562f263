/** @file Counter-based random numbers inside programs: values depend only on key and position. */

import { foldIn as onnxFoldIn, randomUniform as onnxUniform } from '../onnx/randomLowerings.js';
import { CompilerError, type Shape, sameShape, type TensorSpec } from '../program/tensors.js';
import { bitsToUniform } from '../random/prng.js';
import { foldInHost, numbersOf } from '../random/randomWords.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsShape, perOutputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';

/** Uniform numbers in [0, 1) on the host, like the traced RandomUniform. */
export const randomUniformHost = (key: ArrayLike<number>, size: number): Float32Array =>
  numbersOf(key, size, bitsToUniform);

export const expectsKey = (key: TensorSpec): void =>
  expects(key.dtype === 'int32' && sameShape(key.shape, [2]), 'a key int32[2]', key);

defineOperation('RandomUniform', {
  inputs: ['key'],
  attrs: (raw) => ({ shape: [...raw.shape] }),
  infer: ([key], { shape }) => {
    expectsKey(key!);
    expectsShape(shape);
    return [spec(shape, 'float32')];
  },
  flops: perOutputElement(12),
  onnx: onnxUniform,
  device: { kind: 'map', counts: 'elements' },
});

defineOperation('FoldIn', {
  inputs: ['key'],
  attrs: (raw) => ({ data: raw.data }),
  infer: ([key]) => {
    expectsKey(key!);
    return [spec([2], 'int32')];
  },
  onnx: onnxFoldIn,
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

/** @throws CompilerError for a number that is no probability in (0, 1] */
export function checkKeepProb(keepProb: number): void {
  if (!(keepProb > 0 && keepProb <= 1)) {
    throw new CompilerError(`dropout: expected keepProb in (0, 1], got ${keepProb}.`);
  }
}

/**
 * Zeroes elements with probability 1 - keepProb and divides the rest by keepProb (Srivastava et al., 2014).
 *
 * @param x float32 of any shape. @param key int32 [2]. @param keepProb in (0, 1].
 */
export function dropout(x: tf.Tensor, key: tf.Tensor, keepProb: number): tf.Tensor {
  checkKeepProb(keepProb);
  if (keepProb === 1) return x;
  const kept = tf.cast(tf.less(randomUniform(key, x.shape), keepProb), 'float32');
  return tf.mul(x, tf.mul(kept, 1 / keepProb));
}
