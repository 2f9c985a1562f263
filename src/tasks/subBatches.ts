/** @file Sub-batches of a step: the rows of a batch in parts, and sums over them by one fixed tree. */
import {
  addRows,
  flattenTree,
  isTensor,
  mapTree,
  ops,
  type RowGradient,
  type Tensor,
  type Tree,
  tf,
} from '../compiler/index.js';
import { ConfigError } from '../hparams/index.js';
import type { TensorBatch } from '../models/index.js';

/**
 * The rows of each tensor of a batch in `count` parts, [count, rows / count, ...].
 *
 * @param total sub-batches of the step, of which the batch has `count`.
 * @throws ConfigError where a tensor's rows cannot be divided.
 */
export function splitRows(batch: TensorBatch, count: number, total: number): TensorBatch {
  return mapTree<Tensor, Tensor>(batch, isTensor, (tensor, name) => {
    const [rows, ...rest] = tensor.shape;
    if (rows === undefined || rows % count !== 0) {
      const has = rows === undefined ? 'has none' : `has ${rows}`;
      throw new ConfigError(
        `task.train.numSubBatches is ${total}, ${count < total ? `${count} of them here, ` : ''}which needs a multiple of ` +
          `${count} rows in each tensor of a batch, and '${name}' ${has}.`,
        { path: 'task.train.numSubBatches' },
      );
    }
    return tf.reshape(tensor, [count, rows / count, ...rest]);
  }) as TensorBatch;
}

/**
 * How many of a step's sub-batches each rank takes: a power of two, so that the tree over all has a node for each rank.
 *
 * @throws ConfigError where they cannot be shared so.
 */
export function partsOfRank(total: number, ranks: number): number {
  const count = total / ranks;
  if (ranks === 1 || (Number.isInteger(count) && Number.isInteger(Math.log2(count)))) return count;
  throw new ConfigError(
    `task.train.numSubBatches is ${total} on ${ranks} ranks, and each takes as many sub-batches, 1 or 2 or 4 …: ` +
      `set it to ${ranks}, ${2 * ranks} or ${4 * ranks} …`,
    { path: 'task.train.numSubBatches' },
  );
}

/** The sum of what the ranks have, by the tree of `overParts`. */
export function treeReduce<T>(parts: readonly T[], add: (a: T, b: T) => T): T {
  const sums = [...parts];
  for (let distance = 1; distance < sums.length; distance *= 2)
    for (let i = 0; i + distance < sums.length; i += 2 * distance)
      sums[i] = add(sums[i]!, sums[i + distance]!);
  return sums[0]!;
}

/** The sum of the ranks' sums, in the first one's memory. They are as long as each other. */
export const treeSum = (parts: readonly Float32Array[]): Float32Array => treeReduce(parts, addTo);

/** A node of the tree: rounds to float32 as programs do. */
function addTo(sum: Float32Array, other: Float32Array): Float32Array {
  for (let i = 0; i < sum.length; i++) sum[i]! += other[i]!;
  return sum;
}

/** Gradients of tables that are rows and indices, by path. */
export type RowGradients = Readonly<Record<string, RowGradient>>;

/** A node of the tree of gradients that are rows and indices. */
export const addTables = (a: RowGradients, b: RowGradients): RowGradients =>
  Object.fromEntries(Object.entries(a).map(([path, table]) => [path, addRows(table, b[path]!)]));

/** What a step gives for a part of a batch: `sums` and `tables` are added over parts, `rows` follow one another. */
export interface PartResult extends Readonly<Record<string, Tree<Tensor>>> {
  readonly sums: Tree<Tensor>;
  readonly tables: RowGradients;
  readonly rows: Tree<Tensor>;
}

/**
 * Results for the parts [begin, end) of `xs`, combined by a tree that depends on their numbers alone: a block of 2^k parts
 * whose first number is a multiple of 2^k combines its halves. So parts may be computed in any grouping into such blocks, on
 * one machine or on several, with the same bits. A block is one loop over a body that is traced once.
 *
 * @param f of a part, tensors of `xs` without their first axis.
 * @param xs tensors [parts, ...].
 */
export function overParts<X extends Tree<Tensor>>(
  f: (part: X) => PartResult,
  xs: X,
  begin: number,
  end: number,
): PartResult {
  const count = end - begin;
  if (count === 1) return f(sliced(xs, begin, count, (shape) => shape.slice(1)));
  const half = 2 ** Math.floor(Math.log2(count - 1));
  if (2 * half !== count) {
    const middle = begin + half;
    return combined(overParts(f, xs, begin, middle), overParts(f, xs, middle, end));
  }
  const halves = sliced(xs, begin, count, ([, ...rest]) => [2, half, ...rest]);
  const [, both] = ops.scan(
    (carry: Record<string, never>, part: X) => [carry, overParts(f, part, 0, half)] as const,
    {},
    halves,
  );
  return combined(at(both, 0), at(both, 1));
}

/** Parts [begin, begin + count) in another shape. */
function sliced<X extends Tree<Tensor>>(
  xs: X,
  begin: number,
  count: number,
  shaped: (shape: number[]) => number[],
): X {
  return mapTree<Tensor, Tensor>(xs, isTensor, (x) => {
    const shape = [count, ...x.shape.slice(1)];
    const zeros = shape.slice(1).map(() => 0);
    const part = count === x.shape[0] ? x : tf.slice(x, [begin, ...zeros], shape);
    return tf.reshape(part, shaped(shape));
  }) as X;
}

/** Leaves of a tree with those of another of the same structure. */
function zipped(a: Tree<Tensor>, b: Tree<Tensor>, f: (a: Tensor, b: Tensor) => Tensor): Tree<Tensor> {
  const others = new Map(flattenTree<Tensor>(b, isTensor).map(({ path, value }) => [path, value]));
  return mapTree<Tensor, Tensor>(a, isTensor, (leaf, path) => f(leaf, others.get(path)!));
}

const combined = (a: PartResult, b: PartResult): PartResult => ({
  sums: zipped(a.sums, b.sums, (x, y) => tf.add(x, y)),
  tables: addTables(a.tables, b.tables),
  rows: zipped(a.rows, b.rows, (x, y) => tf.concat([x, y])),
});

/** One of several results that are stacked. */
const at = (stacked: PartResult, index: number): PartResult =>
  sliced(stacked, index, 1, ([, ...shape]) => shape) as PartResult;
