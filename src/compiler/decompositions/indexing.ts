/** @file Decompositions of gathers, scatters, counts and searches into gathers and sums of rows. */

import { sizeOf } from '../program/tensors.js';
import { expects, resolveAxis } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { readScope } from '../trace/gradientScopes.js';
import { currentScope } from '../trace/scopes.js';
import {
  type Decomposition,
  type DecompositionTable,
  differentiate,
  runKernel,
  type Variant,
} from './decomposition.js';

const scalarInt = (value: number): tf.Tensor => tf.scalar(value, 'int32');

/** Integers from 0, as a column [limit, 1]. */
const column = (limit: number): tf.Tensor => tf.reshape(tf.range(0, limit, 1, 'int32'), [limit, 1]);

/** The same indices; one that is out of range stops the program, as in any gather. */
const checked = (indices: tf.Tensor, limit: number): tf.Tensor =>
  tf.gather(tf.range(0, limit, 1, 'int32'), indices as tf.Tensor1D);

/**
 * Sums of the rows [n, size] by segment, [segments, size]. Unlike tf.unsortedSegmentSum's, a row that is not finite
 * reaches no other segment on any engine.
 */
export const sumRows = (x: tf.Tensor, segmentIds: tf.Tensor, numSegments: number): tf.Tensor =>
  runKernel('UnsortedSegmentSum', { x, segmentIds }, { numSegments, isExact: true });

/** Rows of a tensor that indices address by its first `depth` axes. */
interface Rows {
  /** How many there are. */
  readonly count: number;
  /** Elements of one. */
  readonly size: number;
  /** The row of each index, [n]. */
  readonly at: tf.Tensor;
}

/** @param indices [..., depth], or [n] where `depth` is 1. */
function rowsOf(indices: tf.Tensor, shape: readonly number[], depth: number): Rows {
  expects(depth <= shape.length, `indices of at most ${shape.length} axes`, indices);
  const strides = shape.slice(0, depth).map((_, axis) => sizeOf(shape.slice(axis + 1, depth)));
  const table = tf.reshape(indices, [depth === 0 ? 1 : indices.size / depth, depth]);
  const at = depth === 1 ? tf.reshape(table, [-1]) : tf.sum(tf.mul(table, tf.tensor1d(strides, 'int32')), 1);
  return { count: sizeOf(shape.slice(0, depth)), size: sizeOf(shape.slice(depth)), at };
}

/** How many axes the indices of a scatter address. */
const scatterDepth = ({ rank, shape }: tf.Tensor): number => (rank > 1 ? shape.at(-1)! : 1);

const gatherNd: Decomposition = ({ params, indices }) => {
  const depth = indices!.shape.at(-1)!;
  const { count, size, at } = rowsOf(indices!, params!.shape, depth);
  const gathered = tf.gather(tf.reshape(params!, [count, size]), at as tf.Tensor1D);
  return tf.reshape(gathered, [...indices!.shape.slice(0, -1), ...params!.shape.slice(depth)]);
};

const scatterNd: Decomposition = ({ updates, indices }, { shape }) => {
  const { count, size, at } = rowsOf(indices!, shape, scatterDepth(indices!));
  const rows = tf.reshape(updates!, [at.size, size]);
  const isBool = rows.dtype === 'bool';
  const sums = sumRows(isBool ? tf.cast(rows, 'int32') : rows, at, count);
  return tf.reshape(isBool ? tf.cast(sums, 'bool') : sums, shape);
};

/** The tensor with rows replaced; of several for one row, the last counts. */
function replaceRows(tensor: tf.Tensor, indices: tf.Tensor, updates: tf.Tensor): tf.Tensor {
  const { count, size, at } = rowsOf(indices, tensor.shape, scatterDepth(indices));
  const n = at.size;
  if (n === 0 || tensor.size === 0) return tensor;
  // A stable sort from the highest row to the lowest, of the updates from last to first: the first of each row wins.
  const { values: rows, indices: order } = tf.topk(tf.reverse(at, 0), n);
  const isFirst = tf.concat([
    tf.fill([1], 1, 'bool' as 'float32'),
    tf.notEqual(tf.slice(rows, [1], [n - 1]), tf.slice(rows, [0], [n - 1])),
  ]);
  const place = tf.sub(scalarInt(n), order);
  const winners = tf.cast(tf.where(isFirst, place, tf.zerosLike(place)), 'float32');
  // One more than the update's position; 0 for none. Exact in float32, whose sums are the faster.
  const winner = tf.reshape(tf.cast(sumRows(tf.reshape(winners, [n, 1]), rows, count), 'int32'), [count]);
  const chosen = tf.gather(
    tf.reshape(updates, [n, size]),
    tf.maximum(tf.sub(winner, scalarInt(1)), scalarInt(0)) as tf.Tensor1D,
  );
  const isWritten = tf.reshape(tf.greater(winner, scalarInt(0)), [count, 1]);
  return tf.reshape(tf.where(isWritten, chosen, tf.reshape(tensor, [count, size])), tensor.shape);
}

const tensorScatterUpdate: Decomposition = ({ tensor, updates, indices }) =>
  replaceRows(tensor!, indices!, updates!);

const sparseToDense: Decomposition = ({ sparseValues, defaultValue, sparseIndices }, { outputShape }) => {
  const count = sparseIndices!.size / scatterDepth(sparseIndices!);
  const values = tf.broadcastTo(tf.reshape(sparseValues!, [sparseValues!.rank === 0 ? 1 : count]), [count]);
  const filled = tf.broadcastTo(tf.cast(defaultValue!, sparseValues!.dtype), outputShape);
  const indices = tf.reshape(sparseIndices!, [count, scatterDepth(sparseIndices!)]);
  return replaceRows(filled, indices, values);
};

/** A gather within each batch, as one of rows of all batches. */
const gatherInBatches: Decomposition = ({ x, indices }, attrs) => {
  const axis = resolveAxis(attrs.axis ?? 0, x!.rank);
  const { batchSize, outerSize, dimSize, sliceSize, outputShape } =
    tf.backend_util.segment_util.collectGatherOpShapeInfo(x!, indices!, axis, attrs.batchDims);
  const starts = tf.mul(column(batchSize * outerSize), scalarInt(dimSize));
  const within = tf.reshape(checked(indices!, dimSize), [batchSize, 1, -1]);
  const at = tf.add(within, tf.reshape(starts, [batchSize, outerSize, 1]));
  const table = tf.reshape(x!, [batchSize * outerSize * dimSize, sliceSize]);
  return tf.reshape(tf.gather(table, tf.reshape(at, [-1]) as tf.Tensor1D), outputShape);
};

const hasBatches = ({ batchDims = 0 }: { batchDims?: number }): boolean => batchDims !== 0;

/** Occurrences of 0 to size - 1 in each row of x, or their weights; values above are left out. */
function countIn(x: tf.Tensor, weights: tf.Tensor, size: number): tf.Tensor {
  const [rows, columns] = x.shape as [number, number];
  const values = checked(tf.minimum(x, scalarInt(size)), size + 1);
  const at = tf.add(values, tf.mul(column(rows), scalarInt(size + 1)));
  const given =
    weights.size > 0
      ? tf.reshape(weights, [rows * columns, 1])
      : tf.fill([rows * columns, 1], 1, weights.dtype as 'float32');
  const sums = sumRows(given, tf.reshape(at, [-1]), rows * (size + 1));
  return tf.slice(tf.reshape(sums, [rows, size + 1]), [0, 0], [rows, size]);
}

/** Of all elements. */
const bincount: Decomposition = ({ x, weights }, { size }) =>
  tf.reshape(countIn(tf.reshape(x!, [1, x!.size]), weights!, size), [size]);

const denseBincount: Decomposition = ({ x, weights }, { size, binaryOutput }) => {
  const table = x!.rank === 1 ? tf.reshape(x!, [1, x!.size]) : x!;
  const noWeights = tf.zeros([0], weights!.dtype as 'float32');
  const counts = countIn(table, binaryOutput ? noWeights : weights!, size);
  const result = binaryOutput ? tf.minimum(counts, tf.onesLike(counts)) : counts;
  return x!.rank === 1 ? tf.reshape(result, [size]) : result;
};

/** A binary search for all values at once, as many steps as the longest takes. */
const searchSorted: Decomposition = ({ sortedSequence, values }, { side }) => {
  const [rows, size] = sortedSequence!.shape as [number, number];
  let left: tf.Tensor = tf.zeros(values!.shape, 'int32');
  if (size === 0) return left;
  let right: tf.Tensor = tf.fill(values!.shape, size, 'int32' as 'float32');
  const flat = tf.reshape(sortedSequence!, [-1]);
  const starts = tf.mul(column(rows), scalarInt(size));
  const isBefore = side === 'left' ? tf.less : tf.lessEqual;
  for (let step = 0; step < Math.ceil(Math.log2(size + 1)); step++) {
    const middle = tf.floorDiv(tf.add(left, right), scalarInt(2));
    const at = tf.add(tf.minimum(middle, scalarInt(size - 1)), starts);
    const before = isBefore(tf.gather(flat, at as tf.Tensor1D), values!);
    const isOpen = tf.less(left, right);
    const next = tf.where(tf.logicalAnd(isOpen, before), tf.add(middle, scalarInt(1)), left);
    right = tf.where(tf.logicalAnd(isOpen, tf.logicalNot(before)), middle, right);
    left = next;
  }
  return right;
};

const diag: Decomposition = ({ x }) => {
  const flat = tf.reshape(x!, [x!.size]);
  const isOn = tf.equal(column(x!.size), tf.range(0, x!.size, 1, 'int32'));
  const row = tf.broadcastTo(tf.reshape(flat, [1, x!.size]), [x!.size, x!.size]);
  return tf.reshape(tf.where(isOn, row, tf.zerosLike(row)), [...x!.shape, ...x!.shape]);
};

/** start + i (stop - start) / (num - 1). */
const linSpace: Decomposition = (_, { start, stop, num }) =>
  tf.tensor1d(
    Float32Array.from({ length: num }, (_, i) =>
      num === 1 ? start : start + (i * (stop - start)) / (num - 1),
    ),
  );

/** The shape that two shapes broadcast to, as values. */
const broadcastArgs: Decomposition = ({ s0, s1 }) => {
  const rank = Math.max(s0!.size, s1!.size);
  const [a, b] = [s0!, s1!].map((s) => tf.pad(tf.cast(s, 'int32'), [[rank - s.size, 0]], 1));
  return tf.where(tf.equal(a!, scalarInt(1)), b!, a!);
};

export const indexingDecompositions: DecompositionTable = {
  GatherNd: gatherNd,
  ScatterNd: scatterNd,
  TensorScatterUpdate: tensorScatterUpdate,
  SparseToDense: sparseToDense,
  Bincount: bincount,
  DenseBincount: denseBincount,
  SearchSorted: searchSorted,
  Diag: diag,
  LinSpace: linSpace,
  BroadcastArgs: broadcastArgs,
};

/**
 * Leaves out rows with negative ids, as zeros of the first segment. The gradient of a gather calls the same operation, whose
 * negative ids are errors.
 */
const segmentSum: Variant = ({ x, segmentIds }, { numSegments, isExact, isClamped }) => {
  const isOneEach =
    segmentIds!.rank === 1 && segmentIds!.dtype === 'int32' && segmentIds!.size === x!.shape[0];
  if (isExact || isClamped || !(numSegments > 0) || !isOneEach) return null;
  if (readScope(currentScope()).isGradient) return null;
  const isKept = tf.greaterEqual(segmentIds!, scalarInt(0));
  const fits = tf.reshape(isKept, [segmentIds!.size, ...x!.shape.slice(1).map(() => 1)]);
  const rows = tf.where(fits, x!, tf.zerosLike(x!));
  const ids = tf.maximum(segmentIds!, scalarInt(0));
  return runKernel('UnsortedSegmentSum', { x: rows, segmentIds: ids }, { numSegments, isClamped: true });
};

export const indexingVariants: Readonly<Record<string, Variant>> = {
  GatherV2: (inputs, attrs) => (hasBatches(attrs) ? gatherInBatches(inputs, attrs) : null),
  UnsortedSegmentSum: segmentSum,
};

differentiate('GatherNd', gatherNd, ['params', 'indices'], 1);
differentiate('ScatterNd', scatterNd, ['updates', 'indices'], 1);
differentiate('TensorScatterUpdate', tensorScatterUpdate, ['tensor', 'updates', 'indices'], 2);
differentiate('SparseToDense', sparseToDense, ['sparseValues', 'defaultValue', 'sparseIndices'], 2);
differentiate('Diag', diag, ['x']);

// tfjs's gradient of a gather in batches takes them one by one, and is wrong for more than one axis of them.
const ofRows = tf.getGradient('GatherV2');
differentiate('GatherV2', gatherInBatches, ['x', 'indices'], 1);
const inBatches = tf.getGradient('GatherV2');
tf.registerGradient({
  ...ofRows,
  gradFunc: (dy, saved, attrs) => (hasBatches(attrs) ? inBatches : ofRows).gradFunc(dy, saved, attrs),
});
