/** @file Products of the factors of weights in few bits: of single weights, of stacks that a loop reads, and in blocks. */
import { expect, test } from 'vitest';
import { compileProgram, factorProducts, ops, type Tensor, tf } from '../../../src/compiler/index.js';

const D = 32;
const [M, TURNS] = [3, 2];
const inputs = {
  x: { shape: [M, 2 * D], dtype: 'float32' },
  single: { shape: [D, 2 * D], dtype: 'int32', storage: 'int8' },
  stack: { shape: [TURNS, D, D], dtype: 'int32', storage: 'int8' },
  other: { shape: [D, D], dtype: 'int32', storage: 'int8' },
} as const;

/** x by `single`, then by each matrix of `stack`, then by `other`. */
function network({ x, single, stack, other }: Record<keyof typeof inputs, Tensor>) {
  const by = (rows: Tensor, codes: Tensor): Tensor =>
    tf.matMul(rows, ops.dequantize(codes, tf.fill([D, 1], 0.01) as Tensor, 8), false, true);
  const [last, before] = ops.scan((h: Tensor, codes: Tensor) => [by(h, codes), h], by(x, single), stack) as [
    Tensor,
    Tensor,
  ];
  return { output: by(last, other), before, last };
}

const values = (size: number, seed: number): number[] =>
  Array.from({ length: size }, (_, i) => Math.round(60 * Math.sin(seed + i * i)));
const data = {
  x: Float32Array.from(values(M * 2 * D, 1)),
  single: Int8Array.from(values(2 * D * D, 2)),
  stack: Int8Array.from(values(TURNS * D * D, 3)),
  other: Int8Array.from(values(D * D, 4)),
};

/** x^T x of the columns from `first` on. */
function gram(x: ArrayLike<number>, depth: number, first: number, size: number): number[] {
  return Array.from({ length: size * size }, (_, at) => {
    const [i, j] = [first + Math.floor(at / size), first + (at % size)];
    let sum = 0;
    for (let m = 0; m < M; m++) sum += x[m * depth + i]! * x[m * depth + j]!;
    return sum;
  });
}

test('each wanted weight has its own', async () => {
  const { program, products } = factorProducts(network as never, inputs, (path) => path !== 'other', D);
  expect(products).toEqual([
    { path: 'single', part: 0, first: 0, size: D },
    { path: 'single', part: 0, first: D, size: D },
    { path: 'stack', part: 0, first: 0, size: D },
    { path: 'stack', part: 1, first: 0, size: D },
  ]);
  const executable = await compileProgram(program, { engine: 'onnx' });
  const found = (await executable.bind({ inputs: data as never }).run()) as unknown as {
    data: Float32Array;
  }[];
  await executable.dispose();

  // By hand: rows that each product reads.
  const times = (x: number[], depth: number, codes: Int8Array): number[] =>
    Array.from({ length: M * D }, (_, at) => {
      const [m, c] = [Math.floor(at / D), at % D];
      let sum = 0;
      for (let i = 0; i < depth; i++) sum += x[m * depth + i]! * codes[c * depth + i]! * 0.01;
      return sum;
    });
  const first = times([...data.x], 2 * D, data.single);
  const second = times(first, D, data.stack.subarray(0, D * D));
  const expected = [
    gram(data.x, 2 * D, 0, D),
    gram(data.x, 2 * D, D, D),
    gram(first, D, 0, D),
    gram(second, D, 0, D),
  ];
  for (const [i, numbers] of expected.entries()) {
    const largest = Math.max(...numbers.map(Math.abs));
    for (const [at, number] of numbers.entries())
      expect(Math.abs(found[i]!.data[at]! - number)).toBeLessThan(1e-4 * largest);
  }
});
