/** @file Codebooks: the nearest vector of each group, and how a batch uses the codes (praxis/layers/quantizer_objectives.py). */
import { ops, type Tensor, tf } from '../../compiler/index.js';

/** `values` with the gradient of `x`. */
export const straightThrough = (values: Tensor, x: Tensor): Tensor =>
  tf.add(x, ops.stopGradient(tf.sub(values, x) as Tensor));

/**
 * The nearest vector of a codebook by Euclidean distance, in each group; the first of several.
 *
 * @param latent [B, T, G, H].
 * @param codebook [V, G, H].
 * @returns codes int32 [B, T, G]. No gradient passes.
 */
export function nearestCodes(latent: Tensor, codebook: Tensor): Tensor {
  const [batch, time, groups, depth] = latent.shape as [number, number, number, number];
  const vectors = tf.transpose(ops.stopGradient(codebook), [1, 2, 0]);
  const rows = tf.transpose(tf.reshape(ops.stopGradient(latent), [batch * time, groups, depth]), [1, 0, 2]);
  // |x|² is the same for all codes.
  const distances = tf.sub(tf.sum(tf.square(vectors), 1, true), tf.mul(tf.matMul(rows, vectors), 2));
  const codes = tf.argMin(distances as Tensor, -1);
  return tf.cast(tf.reshape(tf.transpose(codes, [1, 0]), [batch, time, groups]), 'int32');
}

/** Indices of codes int32 [..., G] into rows [V, G], flattened. */
function flatIndices(codes: Tensor, classes: number, byGroup: boolean): Tensor {
  const groups = codes.shape.at(-1)!;
  const scalar = (x: number): Tensor => tf.scalar(x, 'int32');
  const group = tf.range(0, groups, 1, 'int32');
  return byGroup
    ? tf.add(codes, tf.mul(group, scalar(classes)))
    : tf.add(tf.mul(codes, scalar(groups)), group);
}

/** The vectors of codes: [..., G H] of int32 [..., G], from a codebook [V, G, H]. */
export function lookUpCodes(codes: Tensor, codebook: Tensor): Tensor {
  const [classes, groups, depth] = codebook.shape as [number, number, number];
  const table = tf.reshape(codebook, [classes * groups, depth]) as Tensor;
  const vectors = ops.embeddingLookup(table, flatIndices(codes, classes, false));
  return tf.reshape(vectors, [...codes.shape.slice(0, -1), groups * depth]);
}

/** Statistics of the codes in a batch, scalars, without padding; each is a mean over groups. */
export interface CodeStatistics {
  /** Share of the codebook that occurs, from 0 to 1. */
  readonly codebookCoverage: Tensor;
  /** exp of the entropy of the codes' frequencies, in nats: from 1 to the number of classes. */
  readonly pplx: Tensor;
  /** Logarithm of `pplx`. */
  readonly entropy: Tensor;
}

/**
 * How a batch uses a codebook of `classes` vectors.
 *
 * @param codes int32 [B, T, G].
 * @param kept bool [B, T], false for padding.
 */
export function codeStatistics(codes: Tensor, classes: number, kept: Tensor): CodeStatistics {
  const groups = codes.shape.at(-1)!;
  const indices = tf.reshape(flatIndices(codes, classes, true), [-1]) as tf.Tensor1D;
  const counted = tf.cast(kept, 'float32');
  const each = tf.reshape(tf.tile(tf.expandDims(counted, -1), [1, 1, groups]), [-1]) as tf.Tensor1D;
  const counts = tf.reshape(tf.unsortedSegmentSum(each, indices, groups * classes), [groups, classes]);
  const shares = tf.div(counts, tf.maximum(tf.sum(counted), 1));
  const logs = tf.log(tf.maximum(shares, 1e-30));
  const pplx = tf.mean(tf.exp(tf.neg(tf.sum(tf.mul(shares, logs), -1)))) as Tensor;
  const codebookCoverage = tf.mean(tf.cast(tf.greater(counts, 0), 'float32')) as Tensor;
  return { codebookCoverage, pplx, entropy: tf.log(pplx) };
}
