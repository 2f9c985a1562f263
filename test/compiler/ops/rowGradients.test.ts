/** @file Gradients as rows and indices: what coalescing gives, and which gradients are such. */
import { expect, test } from 'vitest';
import {
  compile,
  type HostTensor,
  ops,
  rowsOfGradient,
  type Tensor,
  tf,
  traceProgram,
  valueAndGrad,
} from '../../../src/compiler/index.js';

test('each index gets the sum of its rows in their order, at its last place; the others have rows of 0', async () => {
  const big = 2 ** 24;
  const indices: HostTensor = { shape: [6], dtype: 'int32', data: Int32Array.of(7, 2, 7, 0, 2, 7) };
  const data = Float32Array.of(1, 10, 20, 2, big, -1, 0, 0.5, 30, 3, 1, -big);
  const rows: HostTensor = { shape: [6, 2], dtype: 'float32', data };
  const program = await compile(
    (given: any) => ops.coalesceRows(given),
    { indices, rows },
    { engine: 'onnx' },
  );
  const found = (await program.run({ indices, rows })) as unknown as Record<'indices' | 'rows', HostTensor>;
  expect([...found.indices.data]).toEqual([7, 7, 7, 0, 2, 7]);
  // (1 + 2^24) + 1 is 2^24 in float32, and 1 + 1 + 2^24 is not.
  expect([...found.rows.data]).toEqual([0, 0, 0, 0, 0, 0, 0, 0.5, 50, 5, big, 9 - big]);
  await program.dispose();
});

/** Whether the gradient of a table [9, 2] is rows, and how many. */
function rowsWhere(loss: (table: Tensor, ids: Tensor) => Tensor): number | undefined {
  let count: number | undefined;
  traceProgram(
    ({ table, ids }: { table: Tensor; ids: Tensor }) => {
      const { grads } = valueAndGrad(
        (params: { table: Tensor }) => ({ value: tf.sum(loss(params.table, ids)), aux: {} }),
        { table },
      );
      count = rowsOfGradient(grads.table)?.indices.size;
      return grads;
    },
    { table: { shape: [9, 2], dtype: 'float32' }, ids: { shape: [2, 2], dtype: 'int32' } },
  );
  return count;
}

test('gradients of lookups are rows, those of anything else are not', () => {
  const { embeddingLookup } = ops;
  expect(rowsWhere((table, ids) => tf.square(embeddingLookup(table, ids)))).toBe(4);
  // Three lookups, one of them of a part.
  expect(
    rowsWhere((table, ids) => {
      const part = embeddingLookup(table, tf.reshape(tf.slice(ids, [0, 0], [1, 1]), [1]));
      return tf.add(tf.sum(embeddingLookup(table, ids)), tf.add(tf.sum(part), tf.sum(tf.exp(part))));
    }),
  ).toBe(5);
  const tied = (table: Tensor, ids: Tensor) =>
    tf.matMul(tf.reshape(embeddingLookup(table, ids), [4, 2]), table, false, true) as Tensor;
  expect(rowsWhere(tied)).toBeUndefined();
  expect(rowsWhere((table) => tf.square(table))).toBeUndefined();
  expect(rowsOfGradient(tf.zeros([2, 2]))).toBeUndefined();
});
