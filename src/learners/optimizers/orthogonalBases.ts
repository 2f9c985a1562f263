/** @file Orthogonal bases of symmetric matrices: eigenvectors by Jacobi's rotations, and the Q of Householder's QR. */
import { ops, type Tensor, tf } from '../../compiler/index.js';

/** Rows of a block that a rotation turns, and columns that reflections take before the rest of a matrix has them. */
const BLOCK = 32;
const MAX_SWEEPS = 16;

/**
 * Eigenvectors of a symmetric matrix, as columns, those of the largest eigenvalues first.
 *
 * @param matrix [n, n]
 */
export function eigenvectors(matrix: Tensor): Tensor {
  const n = matrix.shape[0]!;
  const block = n > 2 * BLOCK ? BLOCK : 1;
  const size = Math.max(2, Math.ceil(n / (2 * block)) * 2 * block);
  const below: [number, number] = [0, size - n];
  // Scaled, since squares of statistics of small gradients are nothing in float32.
  const scaled = tf.div(matrix, tf.maximum(tf.max(tf.abs(matrix)), 1e-37));
  const padded = tf.reshape(size === n ? scaled : tf.pad(scaled, [below, below]), [1, size, size]);
  const { turned, rows } = diagonalized(padded as Tensor, block, MAX_SWEEPS);
  let values = tf.sum(tf.where(diagonal(size), turned, tf.zerosLike(turned)), [0, 1]) as Tensor;
  if (size > n) {
    // A vector of the padding has no part in others: behind the smallest eigenvalue, it falls away.
    const outside = tf.sum(tf.abs(tf.slice(rows, [0, 0, n], [1, size, size - n])), [0, 2]);
    values = tf.where(tf.greater(outside, 0.5), tf.fill([size], -3e38), values) as Tensor;
  }
  const { indices } = tf.topk(values, n);
  const sorted = tf.slice(tf.gather(tf.reshape(rows, [size, size]), indices), [0, 0], [n, n]);
  // A step of Newton: thousands of rotations in float32 leave rows that are orthogonal to 1e-5 alone.
  const gram = tf.matMul(sorted, sorted, false, true);
  const near = tf.sub(tf.mul(sorted, 1.5), tf.mul(tf.matMul(gram, sorted), 0.5));
  return tf.transpose(near) as Tensor;
}

/** [n, n], true on the diagonal. */
const diagonal = (n: number): Tensor => tf.greater(tf.eye(n), 0) as Tensor;

/**
 * Jacobi's method (Golub and Van Loan, Matrix Computations, 8.5): in each of the turns of a round robin, every block of rows
 * meets another one, and a rotation makes the matrix of both diagonal. Blocks of more than one row have it by the same method.
 *
 * @param matrices [count, n, n], n a multiple of 2 `block`.
 * @returns the diagonal matrices, and the eigenvectors as rows
 */
function diagonalized(matrices: Tensor, block: number, maxSweeps: number): { turned: Tensor; rows: Tensor } {
  const [count, n] = matrices.shape as [number, number, number];
  const [size, pairs] = [2 * block, n / (2 * block)];
  const order = tf.tensor1d(roundRobin(pairs), 'int32');
  const ofPairs = tf.tensor1d(
    Array.from({ length: pairs * size * size }, (_, i) => {
      const first = Math.floor(i / (size * size)) * size;
      return (first + (Math.floor(i / size) % size)) * n + first + (i % size);
    }),
    'int32',
  );
  const turn = (state: { turned: Tensor; rows: Tensor }) => {
    const met = tf.gather(tf.reshape(state.turned, [count, n * n]), ofPairs, 1);
    const small = tf.reshape(met, [count * pairs, size, size]) as Tensor;
    const by = block === 1 ? rotations(small) : diagonalized(small, 1, 2).rows;
    const onRows = (x: Tensor): Tensor => {
      const product = tf.matMul(by, tf.reshape(x, [count * pairs, size, n]));
      const seated = tf.gather(tf.reshape(product, [count, 2 * pairs, block * n]), order, 1);
      return tf.reshape(seated, [count, n, n]);
    };
    const half = onRows(state.turned);
    return { turned: onRows(tf.transpose(half, [0, 2, 1])), rows: onRows(state.rows) };
  };
  const unit = tf.tile(tf.expandDims(tf.eye(n), 0), [count, 1, 1]) as Tensor;
  const beside = (x: Tensor): Tensor => tf.sum(tf.square(tf.where(diagonal(n), tf.zerosLike(x), x)));
  const before = beside(matrices);
  const { turned, rows } = ops.whileLoop(
    ({ isOpen }: { turned: Tensor; rows: Tensor; left: Tensor; isOpen: Tensor }) => isOpen,
    ({ turned, rows, left }) => {
      const [next] = ops.scan(
        (carry: { turned: Tensor; rows: Tensor }) => [turn(carry), []] as const,
        { turned, rows },
        [],
        {
          length: 2 * pairs - 1,
        },
      );
      const found = beside(next.turned);
      return { ...next, left: found, isOpen: tf.less(found, tf.mul(left, 0.9)) as Tensor };
    },
    { turned: matrices, rows: unit, left: before, isOpen: tf.greater(before, 0) as Tensor },
    { maxSteps: maxSweeps },
  );
  return { turned, rows };
}

/** Rotations whose rows are the eigenvectors of symmetric matrices [count, 2, 2], by the smaller angle. */
function rotations(matrices: Tensor): Tensor {
  const at = (row: number, column: number): Tensor => tf.slice(matrices, [0, row, column], [-1, 1, 1]);
  const [p, q, beside] = [at(0, 0), at(1, 1), at(0, 1)];
  const cotangent = tf.div(tf.sub(q, p), tf.mul(beside, 2)) as Tensor;
  const away = tf.add(tf.abs(cotangent), tf.sqrt(tf.add(tf.square(cotangent), 1)));
  const signed = tf.where(tf.less(cotangent, 0), tf.neg(away), away);
  const tangent = tf.where(tf.equal(beside, 0), tf.zerosLike(p), tf.reciprocal(signed)) as Tensor;
  const cosine = tf.rsqrt(tf.add(tf.square(tangent), 1));
  const sine = tf.mul(cosine, tangent);
  return tf.concat([tf.concat([cosine, tf.neg(sine)], 2), tf.concat([sine, cosine], 2)], 1) as Tensor;
}

/**
 * The block that each place takes after a turn of a round robin of 2 `pairs` blocks, the places of a pair side by side: all but
 * the first move on by one.
 */
function roundRobin(pairs: number): number[] {
  const circle = [
    ...Array.from({ length: pairs }, (_, i) => 2 * i),
    ...Array.from({ length: pairs }, (_, i) => 2 * (pairs - 1 - i) + 1),
  ];
  const from = new Array<number>(2 * pairs).fill(0);
  for (const [i, place] of circle.entries())
    from[place] = circle[i === 0 ? 0 : i === 1 ? circle.length - 1 : i - 1]!;
  return from;
}

/**
 * The orthogonal matrix Q of a decomposition A = Q R with an upper triangular R, by Householder's reflections; Q is orthogonal for
 * any A. Reflections of BLOCK columns are one product, I - W Yᵗ (Bischof and Van Loan, 1987).
 *
 * @param matrix [n, n]
 */
export function orthogonalFactor(matrix: Tensor): Tensor {
  const n = matrix.shape[0]!;
  const width = Math.min(n, BLOCK);
  const panels = Math.ceil(n / width);
  const rows = tf.range(0, n, 1, 'int32') as Tensor;
  const largest = tf.max(tf.abs(matrix), 0, true);
  // Q has nothing of the size of columns, whose squares may be too small or too large.
  const scaled = tf.div(matrix, tf.where(tf.greater(largest, 0), largest, tf.onesLike(largest)));
  const none = tf.zeros([width, n]) as Tensor;
  const pivots = tf.reshape(tf.range(0, panels * width, 1, 'int32'), [panels, width]) as Tensor;
  const [{ basis }] = ops.scan(
    ({ rest, basis }: { rest: Tensor; basis: Tensor }, pivots: Tensor) => {
      const panel = tf.slice(rest, [0, 0], [width, n]);
      const [{ w, y }] = ops.scan(
        ({ panel, w, y }: { panel: Tensor; w: Tensor; y: Tensor }, pivot: Tensor) => {
          const isPivot = tf.equal(rows, pivot);
          const x = tf.reshape(tf.slice(panel, [0, 0], [1, n]), [n]);
          const below = tf.where(tf.greaterEqual(rows, pivot), x, tf.zerosLike(x));
          const top = tf.sum(tf.where(isPivot, x, tf.zerosLike(x)));
          const length = tf.sqrt(tf.sum(tf.square(below)));
          const away = tf.where(tf.less(top, 0), tf.neg(length), length);
          const long = tf.add(below, tf.where(isPivot, away, tf.zerosLike(x)));
          const size = tf.sqrt(tf.sum(tf.square(long)));
          const unit = tf.reshape(tf.where(tf.greater(size, 0), tf.div(long, size), tf.zerosLike(x)), [1, n]);
          // This reflection after those before it: (I - W Yᵗ)(I - 2 u uᵗ).
          const ofEarlier = tf.matMul(tf.matMul(unit, y, false, true), w);
          const added = tf.mul(tf.sub(unit, ofEarlier), 2) as Tensor;
          const onPanel = tf.matMul(tf.matMul(panel, unit, false, true), unit);
          const reflected = tf.sub(panel, tf.mul(onPanel, 2));
          return [
            { panel: next(reflected, 1), w: pushed(w, added), y: pushed(y, unit as Tensor) },
            [],
          ] as const;
        },
        { panel, w: none, y: none },
        pivots,
      );
      const ofRest = tf.matMul(tf.matMul(rest, w, false, true), y);
      const ofBasis = tf.matMul(tf.matMul(basis, w, false, true), y);
      return [
        { rest: next(tf.sub(rest, ofRest), width), basis: tf.sub(basis, ofBasis) as Tensor },
        [],
      ] as const;
    },
    { rest: padRows(tf.transpose(scaled), panels * width), basis: tf.eye(n) as Tensor },
    pivots,
  );
  return basis;
}

/** The rows behind the first `count`, and these behind them. */
const next = (x: Tensor, count: number): Tensor => {
  const [rows, columns] = x.shape as [number, number];
  if (rows === count) return x;
  return tf.concat(
    [tf.slice(x, [count, 0], [rows - count, columns]), tf.slice(x, [0, 0], [count, columns])],
    0,
  );
};

/** Rows without the first one, and another behind them. */
const pushed = (x: Tensor, row: Tensor): Tensor => {
  const [rows, columns] = x.shape as [number, number];
  return rows === 1 ? row : tf.concat([tf.slice(x, [1, 0], [rows - 1, columns]), row], 0);
};

const padRows = (x: Tensor, rows: number): Tensor =>
  rows === x.shape[0]
    ? x
    : tf.pad(x, [
        [0, rows - x.shape[0]!],
        [0, 0],
      ]);
