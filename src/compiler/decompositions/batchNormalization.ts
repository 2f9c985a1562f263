/** @file Decompositions of batch normalization, and of normalization over neighbouring channels. */
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { type Decomposition, type DecompositionTable, differentiate } from './decomposition.js';

/** (x - mean) / sqrt(variance + epsilon) * scale + offset. */
const batchNorm: Decomposition = ({ x, mean, variance, scale, offset }, { varianceEpsilon }) => {
  const deviation = tf.sqrt(tf.add(variance!, varianceEpsilon ?? 1e-3));
  const difference = tf.sub(x!, mean!);
  const normal = tf.div(scale ? tf.mul(difference, scale) : difference, deviation);
  return offset ? tf.add(normal, offset) : normal;
};

/** Sums over the channels at most `radius` away, along the last axis. */
function sumOfNeighbours(x: tf.Tensor, radius: number): tf.Tensor {
  const channels = x.shape.at(-1)!;
  const reach = Math.min(radius, Math.max(0, channels - 1));
  const pads = x.shape.map((_, axis): [number, number] => (axis < x.rank - 1 ? [0, 0] : [reach, reach]));
  const wide = tf.pad(x, pads);
  const terms = Array.from({ length: 2 * reach + 1 }, (_, begin) =>
    tf.slice(
      wide,
      x.shape.map((_, axis) => (axis < x.rank - 1 ? 0 : begin)),
      x.shape,
    ),
  );
  return terms.reduce((sum, term) => tf.add(sum, term));
}

const norms = (x: tf.Tensor, { depthRadius, bias, alpha }: RawAttrs): tf.Tensor =>
  tf.add(tf.mul(sumOfNeighbours(tf.square(x), depthRadius), alpha), bias);

const lrn: Decomposition = ({ x }, attrs) => tf.mul(x!, tf.pow(norms(x!, attrs), -attrs.beta));

/** Each channel is divided by its norm, and is in the norms of its neighbours. */
const lrnGradient: Decomposition = ({ x, y, dy }, attrs) => {
  const { depthRadius, alpha, beta } = attrs;
  const norm = norms(x!, attrs);
  const own = tf.mul(dy!, tf.pow(norm, -beta));
  const through = sumOfNeighbours(tf.div(tf.mul(dy!, y!), norm), depthRadius);
  return tf.sub(own, tf.mul(tf.mul(x!, through), 2 * alpha * beta));
};

export const normalizationDecompositions: DecompositionTable = {
  FusedBatchNorm: batchNorm,
  LRN: lrn,
  LRNGrad: lrnGradient,
};

/** Missing in tfjs. */
differentiate('LRNGrad', lrnGradient, ['x', 'y', 'dy']);

/** tfjs's sums over no axis where the mean is no list. */
tf.registerGradient({
  kernelName: 'FusedBatchNorm',
  inputsToSave: ['x', 'mean', 'variance', 'scale'],
  gradFunc: (dy, saved, attrs) => {
    const [x, mean, variance, scale] = saved as [tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor?];
    const [ones, zeros] = [tf.onesLike(mean), tf.zerosLike(mean)];
    const names = ['x', 'mean', 'variance', 'scale', 'offset'];
    const value = (...given: tf.Tensor[]): tf.Tensor =>
      batchNorm(
        Object.fromEntries(names.map((name, i) => [name, given[i]!])),
        attrs as RawAttrs,
      ) as tf.Tensor;
    const gradients = tf.grads(value)([x, mean, variance, scale ?? ones, zeros], dy as tf.Tensor);
    return Object.fromEntries(names.map((name, i) => [name, () => gradients[i]!.clone()]));
  },
});
