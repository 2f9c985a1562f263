/** @file Decompositions of operations on sparse tensors, whose values are checked as far as a trace knows them. */
import { CompilerError } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import type { Decomposition, DecompositionTable } from './decomposition.js';
import { sumRows } from './indexing.js';

const { backend_util: texts } = tf;

/** The elements, if a trace knows them. */
function known(x: tf.Tensor): readonly number[] | null {
  try {
    return [...x.dataSync()];
  } catch (error) {
    if (error instanceof CompilerError) return null;
    throw error;
  }
}

/** @throws CompilerError for a shape that the elements do not fill. */
function checkReshape(inputShape: readonly number[], newShape: readonly number[]): void {
  const fail = (problem: string): never => {
    throw new CompilerError(problem);
  };
  const free = newShape.indexOf(-1);
  for (const [axis, size] of newShape.entries()) {
    if (size === -1 && axis !== free)
      fail(texts.getSparseReshapeMultipleNegativeOneOutputDimErrorMessage(free, axis));
    if (size < -1) fail(texts.getSparseReshapeNegativeOutputDimErrorMessage(axis, size));
  }
  const shape = newShape.map((size) => (size === -1 ? 1 : size));
  const [size, rest] = [[...inputShape], shape].map(tf.util.sizeFromShape) as [number, number];
  if (free < 0) {
    if (size !== rest) fail(texts.getSparseReshapeInputOutputMismatchErrorMessage([...inputShape], shape));
    return;
  }
  if (rest === 0) fail(texts.getSparseReshapeEmptyTensorZeroOutputDimErrorMessage());
  if (size % rest !== 0) fail(texts.getSparseReshapeInputOutputMultipleErrorMessage([...inputShape], shape));
}

/** The indices of a sparse tensor's elements in another shape, one of whose sizes may be -1. */
const sparseReshape: Decomposition = ({ inputIndices, inputShape, newShape }) => {
  const [given, wanted] = [known(inputShape!), known(newShape!)];
  if (given !== null && wanted !== null) checkReshape(given, wanted);
  const [one, unknown] = [tf.scalar(1, 'int32'), tf.equal(newShape!, tf.scalar(-1, 'int32'))];
  const size = tf.prod(tf.where(unknown, one, newShape!));
  const shape = tf.where(unknown, tf.floorDiv(tf.prod(inputShape!), size), newShape!);
  const stridesOf = (sizes: tf.Tensor): tf.Tensor => tf.cumprod(sizes, 0, true, true);
  const at = tf.sum(tf.mul(inputIndices!, stridesOf(inputShape!)), 1, true);
  return [tf.mod(tf.floorDiv(at, stridesOf(shape)), shape), shape];
};

/**
 * The number of segments.
 *
 * @throws CompilerError for ids that are negative or not in order, and rows out of range, first those of the first segment.
 */
function countSegments(ids: readonly number[], rows: readonly number[] | null, rowCount: number): number {
  const count = (ids.at(-1) ?? -1) + 1;
  if (ids.length > 0 && count <= 0)
    throw new CompilerError(texts.getSparseSegmentReductionNegativeSegmentIdsErrorMessage());
  let begin = 0;
  for (const [i, id] of ids.entries()) {
    const next = ids[i + 1];
    if (next === id) continue;
    if (next !== undefined && next < id)
      throw new CompilerError(texts.getSparseSegmentReductionNonIncreasingSegmentIdsErrorMessage());
    if (id < 0 || id >= count)
      throw new CompilerError(texts.getSparseSegmentReductionSegmentIdOutOfRangeErrorMessage(id, count));
    const bad = rows?.slice(begin, i + 1).findIndex((row) => row < 0 || row >= rowCount) ?? -1;
    if (bad >= 0) {
      const at = begin + bad;
      throw new CompilerError(
        texts.getSparseSegmentReductionIndicesOutOfRangeErrorMessage(at, rows![at]!, rowCount),
      );
    }
    begin = i + 1;
  }
  return count;
}

/** Sums, or means, of chosen rows by segment; the segments' ids must be known, for the last gives their number. */
const sparseSegments =
  (isMean: boolean): Decomposition =>
  ({ data, indices, segmentIds }) => {
    const segments = countSegments([...segmentIds!.dataSync()], known(indices!), data!.shape[0]!);
    const rows = tf.reshape(data!, [data!.shape[0]!, -1]);
    const sums = sumRows(tf.gather(rows, indices as tf.Tensor1D), segmentIds!, segments);
    const counts = sumRows(tf.ones([segmentIds!.size, 1], data!.dtype as 'float32'), segmentIds!, segments);
    const result = isMean ? tf.div(sums, tf.maximum(counts, tf.onesLike(counts))) : sums;
    return tf.reshape(result, [segments, ...data!.shape.slice(1)]);
  };

export const sparseDecompositions: DecompositionTable = {
  SparseReshape: sparseReshape,
  SparseSegmentSum: sparseSegments(false),
  SparseSegmentMean: sparseSegments(true),
};
