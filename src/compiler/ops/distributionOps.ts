/** @file Random numbers of other distributions inside programs: the same bits from the same key on every engine. */

import type { Lowering } from '../onnx/builder.js';
import {
  randomInt as onnxInt,
  randomNormal as onnxNormal,
  randomGumbel,
  randomTruncated,
} from '../onnx/randomLowerings.js';
import type { Attrs } from '../program/ir.js';
import { CompilerError, type HostArray, type Shape, sizeOf, type TensorSpec } from '../program/tensors.js';
import { fillNormal, gumbelOfWord, truncatedOfWord } from '../random/distributions.js';
import { foldInHost, numbersOf, randomWords } from '../random/randomWords.js';
import { defineOperation, inferOutputs } from '../rules/index.js';
import { expects, expectsShape, isWithin, perOutputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';
import { expectsKey, foldIn, randomUniform } from './randomOps.js';

/** Numbers of a key on the host. */
type Numbers = (key: ArrayLike<number>, size: number) => Float32Array;

const normalNumbers: Numbers = (key, size) => {
  const out = new Float32Array(size);
  fillNormal(randomWords(key, size + (size & 1)), 1, out);
  return out;
};

/** Numbers of a distribution on the host and in ONNX, by operation. */
const REALS = {
  RandomNormal: { numbers: normalNumbers, onnx: onnxNormal },
  TruncatedNormal: {
    numbers: (key, size) => numbersOf(key, size, truncatedOfWord),
    onnx: randomTruncated,
  },
  Gumbel: { numbers: (key, size) => numbersOf(key, size, gumbelOfWord), onnx: randomGumbel },
} satisfies Record<string, { readonly numbers: Numbers; readonly onnx: Lowering }>;

/** The operations that draw float32 numbers of a distribution. */
type RealDraw = keyof typeof REALS;

/** Integers from `low` on: of two words, 63 bits are taken modulo the range, in steps that doubles hold. */
function randomIntsHost(key: ArrayLike<number>, size: number, low: number, high: number): Int32Array {
  const words = randomWords(key, 2 * size);
  const range = high - low;
  const integers = new Int32Array(size);
  for (let i = 0; i < size; i++) {
    const [first, second] = [words[2 * i]! >>> 1, words[2 * i + 1]!];
    const upper = ((first % range) * 2 ** 16 + (second >>> 16)) % range;
    integers[i] = low + ((upper * 2 ** 16 + (second & 0xffff)) % range);
  }
  return integers;
}

for (const [draw, { onnx }] of Object.entries(REALS))
  defineOperation(draw, {
    inputs: ['key'],
    attrs: (raw) => ({ shape: [...raw.shape], draw }),
    infer: ([key], { shape }) => {
      expectsKey(key!);
      expectsShape(shape);
      return [spec(shape, 'float32')];
    },
    flops: perOutputElement(50),
    onnx,
    device: { kind: 'call', name: 'random' },
  });

defineOperation('RandomInt', {
  inputs: ['key'],
  attrs: (raw) => ({ shape: [...raw.shape], low: raw.low, high: raw.high }),
  infer: ([key], { shape, low, high }) => {
    expectsKey(key!);
    expectsShape(shape);
    const isRange = isWithin(low, -(2 ** 31)) && isWithin(high, (low as number) + 1, 2 ** 31);
    expects(isRange, 'integers low < high from -2^31 to 2^31', [low, high]);
    return [spec(shape, 'int32')];
  },
  flops: perOutputElement(25),
  onnx: onnxInt,
  device: { kind: 'map', counts: 'elements' },
});

/** Records an operation on a key, or computes its elements. */
function drawn(
  op: string,
  key: tf.Tensor,
  attrs: Attrs & { readonly shape: Shape },
  host: (words: ArrayLike<number>, size: number) => HostArray,
): tf.Tensor {
  if (isTracing()) return recordOp(op, [key], attrs)[0]!;
  const [{ shape, dtype }] = inferOutputs(op, [key as TensorSpec], attrs) as [TensorSpec];
  return tf.tensor(host(key.dataSync(), sizeOf(shape)), [...shape], dtype);
}

const real = (draw: RealDraw, key: tf.Tensor, shape: Shape): tf.Tensor =>
  drawn(draw, key, { shape }, REALS[draw].numbers);

/**
 * float32 numbers of the standard normal distribution, below 6.8 in magnitude (Box & Muller, 1958).
 *
 * @param key int32 [2].
 */
export const randomNormal = (key: tf.Tensor, shape: Shape): tf.Tensor => real('RandomNormal', key, shape);

/**
 * float32 numbers of the standard normal distribution without what lies beyond -2 and 2; tf.truncatedNormal has the same
 * distribution.
 *
 * @param key int32 [2].
 */
export const truncatedNormal = (key: tf.Tensor, shape: Shape): tf.Tensor =>
  real('TruncatedNormal', key, shape);

/**
 * float32 numbers of the standard Gumbel distribution, -log(-log(u)), from -3.2 to 22.9.
 *
 * @param key int32 [2].
 */
export const gumbel = (key: tf.Tensor, shape: Shape): tf.Tensor => real('Gumbel', key, shape);

/**
 * Integers from `low` to `high` - 1, equally likely to one part in 2^31.
 *
 * @param key int32 [2]. @param low, high integers from -2^31 to 2^31.
 * @returns int32.
 */
export const randomInt = (key: tf.Tensor, shape: Shape, low: number, high: number): tf.Tensor =>
  drawn('RandomInt', key, { shape, low, high }, (words, size) => randomIntsHost(words, size, low, high));

/**
 * Truth values that are true with probability p, to 2^-24.
 *
 * @param key int32 [2]. @param p a number, or float32 of any shape. @param shape of the result; default: that of p.
 * @returns bool.
 */
export function bernoulli(key: tf.Tensor, p: number | tf.Tensor, shape?: Shape): tf.Tensor {
  return tf.less(randomUniform(key, shape ?? (typeof p === 'number' ? [] : p.shape)), p);
}

/**
 * Samples from softmax(logits) along the last axis, by the largest of logits and Gumbel noise. The transpose of
 * `categorical(key, logits, [n, batch])` has the shape of tf.multinomial.
 *
 * @param key int32 [2]. @param logits float32 [...batch, classes]. @param shape of the result, which ends in the batch's
 *   dimensions; default: [...batch].
 * @returns int32 from 0 to classes - 1.
 */
export function categorical(key: tf.Tensor, logits: tf.Tensor, shape?: Shape): tf.Tensor {
  const [batch, classes] = [logits.shape.slice(0, -1), logits.shape.at(-1)];
  const wanted = shape ?? batch;
  const ends = wanted.slice(wanted.length - batch.length);
  if (classes === undefined || wanted.length < batch.length || ends.some((size, i) => size !== batch[i]))
    throw new CompilerError(
      `categorical: expected logits [...batch, classes] and a shape that ends in the batch's dimensions, ` +
        `got logits [${logits.shape}] and shape [${wanted}].`,
    );
  return tf.argMax(tf.add(logits, gumbel(key, [...wanted, classes])), -1);
}

/**
 * A permutation of 0 … n - 1, by sorting random words. Ties between words are broken by position, and sorting again
 * makes up for that: as often as it takes for fewer than one permutation in 2n to have elements that tie each time.
 *
 * @param key int32 [2].
 * @returns int32 [n].
 */
export function permutation(key: tf.Tensor, n: number): tf.Tensor {
  if (!isWithin(n, 0, 2 ** 31 - 1))
    throw new CompilerError(`permutation: expected n to be an integer from 0 to 2^31 - 1, got ${n}.`);
  if (n < 2) return tf.zeros([n], 'int32');
  const order = (round: number): tf.Tensor =>
    tf.topk(randomInt(foldIn(key, round), [n], -(2 ** 31), 2 ** 31), n).indices;
  const rounds = Math.ceil((3 * Math.log2(n)) / 32);
  let result = order(0);
  for (let round = 1; round < rounds; round++) result = tf.gather(result, order(round));
  return result;
}

/** Sets keys that `splitKey` makes apart from those that users fold. */
const SPLIT = 0x73706c69;

/** The keys of `splitKey` on the host, one after the other: [2 count]. */
export function splitKeyHost(key: ArrayLike<number>, count: number): Int32Array {
  const own = foldInHost(key, SPLIT);
  return Int32Array.from(Array.from({ length: count }, (_, i) => foldInHost(own, i)).flat());
}

/**
 * Keys that are independent of `key`, of each other, and of those that `foldIn` makes.
 *
 * @param key int32 [2]. @param count of keys.
 * @returns each int32 [2].
 */
export function splitKey(key: tf.Tensor, count = 2): tf.Tensor[] {
  const own = foldIn(key, SPLIT);
  return Array.from({ length: count }, (_, i) => foldIn(own, i));
}
