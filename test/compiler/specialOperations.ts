/** @file Operations of random programs on special values: NaN, infinities, zeros of both signs, the smallest and the largest. */
import { type Tensor, tf } from '../../src/compiler/index.js';

/** Of special values alone: their results are results of the program, and nothing goes on with them. */
export const specials: Record<string, (x: Tensor, n: number) => Tensor> = {
  specialFunction: (x, n) => functions[n % functions.length]!(x),
  specialRest: (x, n) => rest[n % rest.length]!(x),
  specialExact: (x, n) => exact[n % exact.length]!(x),
  // Of one sign: the order of terms may not decide whether a sum is infinite.
  specialSum: (x, n) => tf.sum(tf.abs(tf.slice(x, [n], [3]))),
  specialCompare: (x, n) => compared[n % compared.length]!(x, tf.reverse(x, 0)),
  specialMove: (x, n) => tf.concat([tf.slice(x, [n], [2]), tf.gather(x, tf.tensor1d([n, 3, 3], 'int32'))]),
};

/** Which are exact, or nearly, everywhere. */
const exact: readonly ((x: Tensor) => Tensor)[] = [
  tf.neg,
  tf.abs,
  tf.relu,
  tf.floor,
  tf.ceil,
  tf.square,
  tf.sqrt,
  tf.tanh,
  tf.sigmoid,
  tf.isNaN,
  tf.isInf,
  tf.isFinite,
];

/** Within what docs/guide/numerics.md says, however large the argument. */
const functions: readonly ((x: Tensor) => Tensor)[] = [
  tf.exp,
  tf.expm1,
  tf.log,
  tf.log1p,
  tf.sin,
  tf.cos,
  tf.softplus,
  tf.erf,
  tf.elu,
  (x) => tf.pow(x, 0.5),
  (x) => tf.pow(x, -1),
  (x) => tf.pow(x, 3),
];

/** Of numbers alone where tfjs answers otherwise for NaN. */
const rest: readonly ((x: Tensor) => Tensor)[] = [
  tf.rsqrt,
  tf.reciprocal,
  tf.round,
  tf.relu6,
  tf.step,
  (x) => tf.leakyRelu(x, 0.2),
  (x) => tf.clipByValue(x, -1, 1),
  (x) => tf.cast(x, 'int32'),
  (x) => tf.cast(x, 'bool'),
  (x) => tf.stack([tf.max(x), tf.min(x), tf.max(numbers(x)), tf.min(numbers(x))]),
  (x) => tf.add(tf.argMax(numbers(x)), tf.argMin(numbers(x))),
  (x) => tf.concat([tf.sign(numbers(x)), tf.softmax(tf.slice(x, [8], [3]))]),
];

const numbers = (x: Tensor): Tensor => tf.slice(x, [1], [x.size - 1]);

const compared: readonly ((x: Tensor, y: Tensor) => Tensor)[] = [
  tf.add,
  tf.sub,
  tf.mul,
  tf.div,
  tf.greater,
  tf.lessEqual,
  tf.equal,
  tf.notEqual,
  (x, y) => tf.where(tf.greater(x, y), x, y),
  tf.maximum,
  tf.minimum,
];
