/** @file Decompositions of elementwise kernels and of products along an axis. */
import { cellsFrom } from '../ops/windows.js';
import { kernelNames, ruleOf } from '../rules/index.js';
import { resolveAxis } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import {
  type Decomposition,
  type DecompositionTable,
  differentiate,
  runKernel,
  type Variant,
} from './decomposition.js';

const HALF_PI = Math.PI / 2;
/** Of selu (Klambauer et al. 2017, "Self-Normalizing Neural Networks"). */
const SELU = { scale: 1.0507009873554805, scaleAlpha: 1.7580993408473768 } as const;

/** Whether the sign is set, of −0 too. */
const isNegative = (x: tf.Tensor): tf.Tensor => tf.less(tf.where(tf.equal(x, 0), tf.reciprocal(x), x), 0);

/** The angle of the smaller to the larger, where both are zero or infinite as IEEE 754 has it. */
function angle(y: tf.Tensor, x: tf.Tensor): tf.Tensor {
  const [rise, run] = [tf.abs(y), tf.abs(x)];
  const isEqual = tf.equal(rise, run);
  // 0 / 0 and infinity / infinity are no numbers.
  const diagonal = tf.where(tf.equal(rise, 0), tf.zerosLike(rise), tf.fill(rise.shape, HALF_PI / 2));
  const steep = tf.where(isEqual, diagonal, tf.atan(tf.div(rise, run)));
  const size = tf.where(isNegative(x), tf.sub(Math.PI, steep), steep);
  // A product keeps −0, which ONNX Runtime's Where makes 0.
  return tf.mul(size, tf.where(isNegative(y), tf.fill(y.shape, -1), tf.onesLike(y)));
}

/** Computed in float32, with a result of the operands' type, as tfjs's kernels have it. */
const inFloats =
  (f: (...xs: tf.Tensor[]) => tf.Tensor): ((...xs: tf.Tensor[]) => tf.Tensor) =>
  (...xs) =>
    tf.cast(f(...xs.map((x) => tf.cast(x, 'float32'))), xs[0]!.dtype);

const unary =
  (f: (x: tf.Tensor) => tf.Tensor): Decomposition =>
  ({ x }) =>
    f(x!);

/**
 * Products of each element with those before it, by doubling strides.
 *
 * @param exclusive without the element itself. @param reverse with those behind it instead.
 */
function cumulativeProducts(x: tf.Tensor, axis: number, exclusive: boolean, reverse: boolean): tf.Tensor {
  const size = x.shape[axis]!;
  const moved = (y: tf.Tensor, by: number): tf.Tensor => {
    const part = (begin: number, count: number) => cellsFrom(y, axis, { begin, step: 1, count });
    const ones = tf.fill(
      x.shape.map((dim, i) => (i === axis ? by : dim)),
      1,
      x.dtype as 'float32',
    );
    return tf.concat(reverse ? [part(by, size - by), ones] : [ones, part(0, size - by)], axis);
  };
  let products = exclusive && size > 0 ? moved(x, 1) : x;
  for (let by = 1; by < size; by *= 2) products = tf.mul(products, moved(products, by));
  return products;
}

const cumprod: Decomposition = ({ x }, { axis, exclusive, reverse }) => {
  const numbers = x!.dtype === 'bool' ? tf.cast(x!, 'int32') : x!;
  return cumulativeProducts(numbers, resolveAxis(axis, x!.rank), exclusive, reverse);
};

export const numberDecompositions: DecompositionTable = {
  Selu: unary(
    inFloats((x) =>
      tf.where(tf.greaterEqual(x, 0), tf.mul(x, SELU.scale), tf.mul(tf.expm1(x), SELU.scaleAlpha)),
    ),
  ),
  Prelu: ({ x, alpha }) => tf.where(tf.less(x!, 0), tf.mul(alpha!, x!), x!),
  Atan2: ({ a, b }) => inFloats(angle)(a!, b!),
  Cumprod: cumprod,
};

/** Functions of float32, whose results tfjs's kernels convert back to the type of the operand. */
const truncating = (): string[] => kernelNames().filter((kernel) => ruleOf(kernel).truncates);

const ofIntegers =
  (kernel: string): Variant =>
  ({ x }) => {
    if (x!.dtype === 'float32') return null;
    const truncated = tf.cast(runKernel(kernel, { x: tf.cast(x!, 'float32') }), 'int32');
    return tf.cast(truncated, x!.dtype);
  };

/** Of truth values, by another kernel or of integers. */
const ofTruths =
  (run: (x: tf.Tensor, attrs: Record<string, any>) => tf.Tensor): Variant =>
  ({ x }, attrs) =>
    x!.dtype === 'bool' ? run(x!, attrs) : null;

const reduced = (kernel: string): Variant => ofTruths((x, attrs) => runKernel(kernel, { x }, attrs));

const asIntegers = (kernel: string): Variant =>
  ofTruths((x, attrs) => runKernel(kernel, { x: tf.cast(x, 'int32') }, attrs));

export const numberVariants: Readonly<Record<string, Variant>> = {
  ...Object.fromEntries(truncating().map((kernel) => [kernel, ofIntegers(kernel)])),
  Max: reduced('Any'),
  Min: reduced('All'),
  ArgMax: asIntegers('ArgMax'),
  ArgMin: asIntegers('ArgMin'),
};

differentiate('Cumprod', cumprod, ['x']);
