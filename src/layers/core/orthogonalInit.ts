/** @file Orthogonal initial values of convolution filters (praxis base_layer.scaled_delta_orthogonal). */
import { type PrngKey, randomBits } from '../../compiler/index.js';
import { WeightInit, type WeightShape } from './weightInit.js';

/**
 * A filter [..., in, out] that is 0 but in its middle, where it is a matrix with orthogonal columns, or rows where out is
 * larger, drawn uniformly, times max(sqrt(in / out), 1) (Xiao et al., 2018). Only for filters of one to three axes.
 */
export class ScaledDeltaOrthogonal extends WeightInit {
  /** @throws Error for a weight that is no filter */
  override draw(key: PrngKey, { shape }: WeightShape): Float32Array {
    const window = shape.slice(0, -2);
    if (window.length < 1 || window.length > 3)
      throw new Error(
        `ScaledDeltaOrthogonal: expected a filter of rank 3, 4 or 5, got [${shape.join(', ')}].`,
      );
    const [rows, columns] = shape.slice(-2) as [number, number];
    const scale = this.hp.scale * Math.max(Math.sqrt(rows / columns), 1);
    const matrix = orthogonal(key, rows, columns);
    const middle = window.reduce((at, size) => at * size + Math.floor((size - 1) / 2), 0);
    const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
    values.set(
      matrix.map((x) => x * scale),
      middle * rows * columns,
    );
    return values;
  }
}

/** A matrix [rows, columns], row-major, whose shorter side's vectors are orthonormal: Gram-Schmidt of normal numbers. */
function orthogonal(key: PrngKey, rows: number, columns: number): Float64Array {
  const [count, length] = [Math.min(rows, columns), Math.max(rows, columns)];
  const bits = randomBits(key, 2 * count * length);
  const uniform = (i: number): number => (bits[i]! + 0.5) / 2 ** 32;
  // Box and Muller's transform: normal numbers of pairs of uniform ones.
  const normal = (i: number): number =>
    Math.sqrt(-2 * Math.log(uniform(2 * i))) * Math.cos(2 * Math.PI * uniform(2 * i + 1));
  const vectors = Array.from({ length: count }, (_, i) =>
    Float64Array.from({ length }, (_, j) => normal(i * length + j)),
  );
  vectors.forEach((vector, i) => {
    // A second pass removes what rounding left of the first.
    for (let pass = 0; pass < 2; pass++)
      for (let k = 0; k < i; k++) subtract(vector, vectors[k]!, dot(vector, vectors[k]!));
    const norm = Math.sqrt(dot(vector, vector));
    vector.forEach((x, j) => {
      vector[j] = x / norm;
    });
  });
  const at = (row: number, column: number): number =>
    rows < columns ? vectors[row]![column]! : vectors[column]![row]!;
  return Float64Array.from({ length: rows * columns }, (_, i) => at(Math.floor(i / columns), i % columns));
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function subtract(a: Float64Array, b: Float64Array, factor: number): void {
  for (let i = 0; i < a.length; i++) a[i]! -= factor * b[i]!;
}
