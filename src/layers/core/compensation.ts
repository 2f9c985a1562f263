/** @file Compensation of a weight's rounding by the weights that are rounded after it (GPTQ, Frantar et al., 2022). */

/** Products of a weight's factors with themselves: blocks on the diagonal of x^T x [D, D], one after the other. */
export interface FactorSums {
  /** Factors of each block but the last one, which may have fewer. */
  readonly block: number;
  /** Row-major, [size, size] each. */
  readonly sums: readonly Float64Array[];
}

/** What the errors of weights add to those behind them: a row for each weight of a block, divided by its first element. */
export interface Compensation {
  readonly block: number;
  /** Row-major, [size, size] each; only what stands right of the diagonal counts. */
  readonly blocks: readonly Float32Array[];
}

/** What is added to the diagonal, of its mean: factors that are never anything but 0 have an inverse, too. */
const DAMPING = 0.01;

/** The upper triangle V of a symmetric matrix V V^T, in the place of its own. */
function factorize(matrix: Float64Array, size: number): void {
  for (let j = size - 1; j >= 0; j--) {
    for (let i = j; i >= 0; i--) {
      let sum = matrix[i * size + j]!;
      for (let k = j + 1; k < size; k++) sum -= matrix[i * size + k]! * matrix[j * size + k]!;
      matrix[i * size + j] = i === j ? Math.sqrt(sum) : sum / matrix[j * size + j]!;
    }
  }
}

/** The inverse of an upper triangle, in its place. */
function invert(matrix: Float64Array, size: number): void {
  const row = new Float64Array(size);
  for (let i = size - 1; i >= 0; i--) {
    row.fill(0, i);
    row[i] = 1;
    for (let m = i + 1; m < size; m++) {
      const factor = matrix[i * size + m]!;
      if (factor === 0) continue;
      for (let k = m; k < size; k++) row[k]! -= factor * matrix[m * size + k]!;
    }
    const divisor = matrix[i * size + i]!;
    for (let k = i; k < size; k++) matrix[i * size + k] = row[k]! / divisor;
  }
}

/**
 * The compensation by the sums of factors: the upper triangle U of the inverse U^T U of each block, each row divided by its
 * element on the diagonal. The sums are overwritten.
 */
export function compensationOf({ block, sums }: FactorSums): Compensation {
  const blocks = sums.map((matrix) => {
    const size = Math.sqrt(matrix.length);
    let trace = 0;
    for (let i = 0; i < size; i++) trace += matrix[i * size + i]!;
    // Of factors that are all 0, no weight matters, and none moves.
    const added = trace === 0 ? 1 : (DAMPING * trace) / size;
    for (let i = 0; i < size; i++) matrix[i * size + i]! += added;
    factorize(matrix, size);
    invert(matrix, size);
    return Float32Array.from(matrix, (x, at) => {
      const row = Math.floor(at / size);
      return at % size < row ? 0 : x / matrix[row * size + row]!;
    });
  });
  return { block, blocks };
}
