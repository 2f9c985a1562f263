/** @file updateRows: operands that do not fit, and indices out of range. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, ops, tf } from '../../../src/compiler/index.js';

test('operands that do not fit one another are an error', () => {
  const expected =
    'updateRows: expected a table [size, depth], rows [n, depth] of its dtype and int32 indices [n], got ';
  const ids = (n: number) => tf.zeros([n], 'int32');
  for (const [x, rows, indices, got] of [
    [tf.zeros([2, 5]), tf.zeros([1, 4]), ids(1), 'float32[2,5], float32[1,4] and int32[1].'],
    [tf.zeros([2, 5]), tf.zeros([2, 5]), ids(1), 'float32[2,5], float32[2,5] and int32[1].'],
    [tf.zeros([2, 5]), tf.zeros([1, 5], 'int32'), ids(1), 'float32[2,5], int32[1,5] and int32[1].'],
    [tf.zeros([2]), tf.zeros([1]), ids(1), 'float32[2], float32[1] and int32[1].'],
    [tf.zeros([2, 5]), tf.zeros([1, 5]), tf.zeros([1]), 'float32[2,5], float32[1,5] and float32[1].'],
  ] as const)
    expect(() => ops.updateRows(x, rows, indices)).toThrow(expected + got);
});

test('an index out of range is told, and nothing is written', async () => {
  const x: HostTensor = { shape: [2, 1], dtype: 'float32', data: Float32Array.of(1, 2) };
  const rows: HostTensor = { shape: [1, 1], dtype: 'float32', data: Float32Array.of(3) };
  const i: HostTensor = { shape: [1], dtype: 'int32', data: Int32Array.of(2) };
  const program = await compile(
    (given: any) => ops.updateRows(given.x, given.rows, given.i),
    { x, rows, i },
    { engine: 'onnx' },
  );
  await expect(program.run({ x, rows, i })).rejects.toThrow(
    "program: input 'i', element [0]: 2 is not one of the 2 rows of float32[2,1], 0 to 1.",
  );
  await program.dispose();
});
