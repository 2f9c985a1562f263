/** @file Eigenvectors and QR of matrices of one block and of several, of full rank and of less. */
import { expect, test } from 'vitest';
import { compile, type Tensor } from '../../../src/compiler/index.js';
import { eigenvectors, orthogonalFactor } from '../../../src/learners/optimizers/orthogonalBases.js';
import { noise } from '../fixtures.js';

type Matrix = Float64Array[];

const matrixOf = (values: ArrayLike<number>, n: number): Matrix =>
  Array.from({ length: n }, (_, i) => Float64Array.from({ length: n }, (_, j) => values[i * n + j]!));
const product = (a: Matrix, b: Matrix): Matrix =>
  a.map((row) => row.map((_, j) => row.reduce((sum, x, k) => sum + x * b[k]![j]!, 0)));
const transposed = (a: Matrix): Matrix => a.map((row, i) => row.map((_, j) => a[j]![i]!));
/** The largest of the entries that `f` picks. */
const largest = (a: Matrix, f = (_i: number, _j: number) => true): number =>
  Math.max(0, ...a.flatMap((row, i) => [...row].map((x, j) => (f(i, j) ? Math.abs(x) : 0))));

/** G Gᵗ of a matrix G with `rank` columns. */
function squared(n: number, rank: number): Matrix {
  const g = matrixOf(noise(n, n * n), n).map((row) => row.map((x, j) => (j < rank ? x : 0)));
  return product(g, transposed(g));
}

const matrices = [squared(1, 1), squared(5, 5), squared(70, 35)];

async function found(): Promise<[Matrix, Matrix][]> {
  const specs = matrices.map((a) => ({ shape: [a.length, a.length], dtype: 'float32' as const }));
  const f = (all: Tensor[]) => all.map((a) => [eigenvectors(a), orthogonalFactor(a)]);
  const executable = await compile(f as never, specs as never, {
    engine: 'native',
    numThreads: 1,
    name: 'bases',
  });
  const inputs = matrices.map((a) => Float32Array.from(a.flatMap((row) => [...row])));
  const results = await executable.bind({ inputs }).run();
  return (results as unknown as { data: Float32Array }[][]).map(
    (pair, i) => pair.map(({ data }) => matrixOf(data, matrices[i]!.length)) as [Matrix, Matrix],
  );
}

test('bases are orthogonal, eigenvectors diagonalize, and Q leaves R triangular', async () => {
  for (const [i, [vectors, q]] of (await found()).entries()) {
    const a = matrices[i]!;
    const size = largest(a);
    for (const each of [vectors, q]) {
      const gram = product(transposed(each), each);
      expect(largest(gram.map((row, i) => row.map((x, j) => x - (i === j ? 1 : 0))))).toBeLessThan(3e-6);
    }
    const turned = product(transposed(vectors), product(a, vectors));
    expect(largest(turned, (i, j) => i !== j) / (size || 1)).toBeLessThan(3e-6);
    const values = turned.map((row, i) => row[i]!);
    for (const [i, value] of values.entries())
      expect(value).toBeLessThanOrEqual((values[i - 1] ?? Infinity) + 1e-5 * size);
    expect(largest(product(transposed(q), a), (i, j) => i > j) / (size || 1)).toBeLessThan(3e-6);
  }
});
