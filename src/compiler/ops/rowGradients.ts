/** @file Gradients of tables that are rows and indices: those that lookups alone make, where most rows have none. */
import { sumRows } from '../decompositions/indexing.js';
import type { Node, Value } from '../program/ir.js';
import * as tf from '../tfjs/tfjs.js';
import { tracedNodes } from '../trace/tracing.js';

/** A gradient of a table [size, depth]: the sum of rows, each at its index. */
export type RowGradient = Readonly<{
  /** int32 [n], each in [0, size). */
  indices: tf.Tensor;
  /** [n, depth] */
  rows: tf.Tensor;
}>;

const int = (value: number): tf.Tensor => tf.scalar(value, 'int32');

/**
 * The same gradient with one row for each index, the sum of its rows in their order, at the last place where the index stands.
 * Indices ascend. In front of them are as many places as were saved, which have the largest index and rows of 0.
 */
export function coalesceRows({ indices, rows }: RowGradient): RowGradient {
  const n = indices.size;
  if (n <= 1) return { indices, rows };
  // Of equal ones, topk tells the first first.
  const { values: sorted, indices: order } = tf.topk(indices, n);
  const isFirst = tf.concat([
    tf.fill([1], 1, 'bool' as 'float32'),
    tf.notEqual(tf.slice(sorted, [1], [n - 1]), tf.slice(sorted, [0], [n - 1])),
  ]);
  const place = tf.sub(int(n), tf.cumsum(tf.cast(isFirst, 'int32')));
  const distinct = tf.topk(tf.where(isFirst, sorted, int(-1)), n).values;
  const padded = tf.where(tf.less(distinct, int(0)), tf.slice(sorted, [0], [1]), distinct);
  return {
    indices: tf.reverse(padded, 0),
    rows: sumRows(tf.gather(rows, order as tf.Tensor1D), place as tf.Tensor, n),
  };
}

/** The sum of two such gradients of one table, coalesced. */
export const addRows = (a: RowGradient, b: RowGradient): RowGradient =>
  coalesceRows({ indices: tf.concat([a.indices, b.indices]), rows: tf.concat([a.rows, b.rows]) });

/**
 * A gradient of a table as rows and indices, where it is made of lookups of the table alone; undefined for others, and outside
 * of traces. Sums have the bits of the dense gradient, which is not computed where nothing else reads it.
 */
export function rowsOfGradient(gradient: tf.Tensor): RowGradient | undefined {
  const traced = tracedNodes();
  if (traced === undefined || gradient.rank !== 2) return undefined;
  const made = new Map<Value, Node>();
  for (const node of traced.nodes) for (const output of node.outputs) made.set(output, node);
  const rowsOf = (value: Value): RowGradient | undefined => {
    const node = made.get(value);
    const [first, second] = node?.inputs ?? [];
    if (node?.op === 'UnsortedSegmentSum')
      return coalesceRows({ indices: traced.wrap(second!), rows: traced.wrap(first!) });
    if (node?.op !== 'Add') return undefined;
    const [a, b] = [rowsOf(first!), rowsOf(second!)];
    return a && b && addRows(a, b);
  };
  return rowsOf(traced.unwrap(gradient));
}
