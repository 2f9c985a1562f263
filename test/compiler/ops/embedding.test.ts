/** @file Embedding gradients: many duplicate ids on two threads, each bit the same on every run. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, valueAndGrad } from '../../../src/compiler/index.js';
import { floats, ints, leavesOf, ops, repeatedly, tf } from '../support.js';

const DEPTH = 24;
const RUNS = 50;

/** Sums of dy's rows by id. Exact in float32 here: all values are multiples of 1/8 and the sums are small. */
function oracle(ids: HostTensor, dy: HostTensor, rows: number): Float32Array {
  const table = new Float32Array(rows * DEPTH);
  ids.data.forEach((id, i) => {
    for (let d = 0; d < DEPTH; d++) table[id * DEPTH + d]! += dy.data[i * DEPTH + d]!;
  });
  return table;
}

const eighths = (x: HostTensor): HostTensor => ({
  ...x,
  data: Float32Array.from(x.data, (v) => Math.round(v * 8) / 8),
});

// Few rows are summed by a matrix product, many by a scatter.
test.each([
  ['few rows, each used about 64 times', 32, 0, 32],
  ['few rows, one of them used always', 65, 7, 8],
  ['many rows, of which 16 are used', 4096, 1000, 1016],
  ['many rows, one of them used always', 513, 512, 513],
])('%s', async (_, rows, low, high) => {
  const ids = ints([16, 128], low, high);
  const dy = eighths(floats([16, 128, DEPTH]));
  const table = floats([rows, DEPTH]);
  const gradient = ({ table, ids, dy }: { table: Tensor; ids: Tensor; dy: Tensor }) =>
    valueAndGrad((w: Tensor) => ({ value: tf.sum(tf.mul(ops.embeddingLookup(w, ids), dy)), aux: [] }), table)
      .grads;
  const executable = await compile(gradient, { table, ids, dy }, { numThreads: 2 });
  const expected = oracle(ids, dy, rows);
  for (let run = 0; run < RUNS; run++) {
    const [grads] = leavesOf(await repeatedly(executable, { table, ids, dy }));
    expect(Buffer.from(grads!.data.buffer).equals(Buffer.from(expected.buffer)), `run ${run}`).toBe(true);
  }
  await executable.dispose();
});

test('a table used in two lookups and a product sums all three gradients', async () => {
  const inputs = { table: floats([12, 3]), a: ints([4], 0, 12), b: ints([2, 2], 0, 12, 9) };
  const loss = (table: Tensor, a: Tensor, b: Tensor) =>
    tf.add(
      tf.sum(tf.square(ops.embeddingLookup(table, a))),
      tf.add(tf.sum(ops.embeddingLookup(table, b)), tf.sum(tf.matMul(table, table, false, true))),
    );
  const f = ({ table, a, b }: any) =>
    valueAndGrad((w: Tensor) => ({ value: loss(w, a, b), aux: [] }), table).grads;
  const compiled = await compile(f, inputs);
  const eager = await compile(f, inputs, { engine: 'eager' });
  const [actual] = leavesOf(await repeatedly(compiled, inputs));
  const [expected] = leavesOf(await eager.run(inputs));
  expected!.data.forEach((value, i) => {
    expect(actual!.data[i]).toBeCloseTo(value, 4);
  });
  await compiled.dispose();
});
