/** @file Cases of decomposed gathers, scatters, counts, searches and Einstein sums. */
import { type DType, type HostTensor, tf } from '../../../src/compiler/index.js';
import { bools, floats, host, ints } from '../values.js';
import { type CaseFunction, type CaseTable, constant, over } from './case.js';

const whole = (shape: number[], values: number[]): HostTensor => host(shape, values, 'int32');

/** Indices as a constant, behind the differentiated operands. */
const at = (f: (x: any, indices: any) => any, indices: HostTensor) => (x: any) =>
  f(x, tf.tensor(indices.data as Int32Array, [...indices.shape], 'int32'));

/** A row three times, one once, others never. */
const repeated = whole([4, 1], [2, 0, 2, 2]);
const pairs = whole([5, 2], [0, 1, 2, 0, 0, 1, 1, 1, 0, 1]);
const notFinite = host([5], [1, NaN, Infinity, -0, 2]);

const einsum = (equation: string, ...shapes: number[][]) =>
  over((...xs) => tf.einsum(equation, ...xs), [shapes.map((shape, i) => floats(shape, -2, 2, i + 1))]);

const casted = (f: CaseFunction, dtype: DType, x: HostTensor) =>
  over((y) => f(tf.cast(y, dtype)), [[x]], constant);

export const indexCases: CaseTable = {
  GatherNd: [
    ...over(at(tf.gatherND, repeated), [[floats([3, 2])], [floats([3])], [floats([3, 2, 2])]]),
    ...over(at(tf.gatherND, pairs), [[floats([3, 2])], [floats([3, 2, 4])]]),
    ...over((x, i) => tf.gatherND(x, i), [[floats([3, 2, 4]), whole([2, 1, 3], [0, 1, 2, 2, 0, 3])]], {
      differentiable: 1,
    }),
    ...over(
      (x, i) => tf.gatherND(x, i),
      [
        [bools([3, 2]), pairs],
        [ints([3, 2], -9, 9), whole([2], [2, 1])],
      ],
      constant,
    ),
  ],
  ScatterNd: [
    ...over(
      (x, i) => tf.scatterND(i, x, [3, 2]),
      [
        [floats([4, 2]), repeated],
        [floats([5]), pairs],
      ],
      {
        differentiable: 1,
      },
    ),
    ...over((x, i) => tf.scatterND(i, x, [3, 2, 4]), [[floats([5, 4]), pairs]], { differentiable: 1 }),
    ...over(
      (x, i) => tf.scatterND(i, x, [3, 2]),
      [
        [notFinite, pairs],
        [ints([5], -9, 9), pairs],
        // Twice true is true here, and 2 in tfjs.
        [bools([3]), whole([3, 2], [0, 1, 2, 0, 1, 1])],
      ],
      constant,
    ),
  ],
  TensorScatterUpdate: [
    ...over((x, y, i) => tf.tensorScatterUpdate(x, i, y), [[floats([3, 2]), floats([4, 2]), repeated]], {
      differentiable: 2,
    }),
    ...over(
      (x, y, i) => tf.tensorScatterUpdate(x, i, y),
      [
        [floats([3, 2]), notFinite, pairs],
        [ints([3, 2], -9, 9), ints([5], -9, 9), pairs],
        [bools([3, 2]), bools([5], 9), pairs],
        [floats([3, 2]), floats([0, 2]), whole([0, 1], [])],
      ],
      constant,
    ),
  ],
  SparseToDense: [
    ...over((x, y, i) => tf.sparseToDense(i, x, [3, 2], y), [[floats([5]), floats([]), pairs]], {
      differentiable: 2,
    }),
    ...over(
      (x, y, i) => tf.sparseToDense(i, x, [5], y),
      [
        [floats([3]), floats([]), whole([3], [4, 0, 4])],
        [floats([]), floats([]), whole([3], [4, 0, 4])],
        [ints([], 2, 9), ints([], 2, 9), whole([], [3])],
        [bools([3]), bools([]), whole([3, 1], [4, 0, 4])],
      ],
      constant,
    ),
  ],
  SparseReshape: over(
    (indices, from, to) => Object.values(tf.sparse.sparseReshape(indices, from, to)),
    [
      [pairs, whole([2], [3, 2]), whole([2], [2, 3])],
      [pairs, whole([2], [3, 4]), whole([3], [2, -1, 2])],
      [whole([2, 3], [0, 0, 1, 1, 2, 3]), whole([3], [2, 3, 6]), whole([2], [9, -1])],
    ],
    constant,
  ),
  SparseSegmentSum: over(
    (x, i) => tf.sparse.sparseSegmentSum(x, i, tf.tensor1d([0, 0, 2, 2], 'int32')),
    [
      [floats([4, 2, 2]), whole([4], [0, 3, 3, 1])],
      [ints([4, 2], -9, 9), whole([4], [0, 3, 3, 1])],
    ],
    constant,
  ),
  SparseSegmentMean: over(
    (x, i) => tf.sparse.sparseSegmentMean(x, i, tf.tensor1d([0, 0, 2, 2], 'int32')),
    [[floats([4, 2]), whole([4], [0, 3, 3, 1])]],
    constant,
  ),
  Bincount: over(
    (x, w) => tf.bincount(x, w, 4),
    [
      [ints([9], 0, 7), floats([9])],
      [ints([9], 0, 7), floats([0])],
      [ints([3, 4, 1], 0, 7), floats([0])],
      [ints([9], 0, 7), ints([9], -4, 9)],
      [whole([5], [0, 1, 1, 2, 9]), notFinite],
    ],
    constant,
  ).concat(
    over((w, x) => tf.bincount(x, w, 4), [[floats([9]), ints([9], 0, 7)]], { differentiable: 1 }),
    // Of choices among floats, and without weights: nothing has a slope.
    over(
      (x) => tf.mul(tf.bincount(tf.cast(tf.abs(x), 'int32') as any, tf.tensor1d([]), 4), tf.sum(x)),
      [[floats([9])]],
    ),
  ),
  DenseBincount: [false, true].flatMap((binary) =>
    over(
      (x, w) => tf.denseBincount(x, w, 4, binary),
      [
        [ints([2, 9], 0, 7), floats([2, 9])],
        [ints([2, 9], 0, 7), floats([0, 0])],
        [ints([2, 3], 0, 7), ints([2, 3], -4, 9)],
        [whole([0, 3], []), floats([0, 3])],
      ],
      constant,
    ).concat(
      over((w, x) => tf.denseBincount(x, w, 4, binary), [[floats([2, 9]), ints([2, 9], 0, 7)]], {
        differentiable: binary ? 0 : 1,
      }),
    ),
  ),
  SearchSorted: [
    ...(['left', 'right'] as const).flatMap((side) =>
      over(
        (sorted, x) => tf.searchSorted(sorted, x, side),
        [
          [
            host([2, 5], [-1, 0, 0, 2, Infinity, 1, 2, 3, 4, 4]),
            host([2, 4], [0, -2, NaN, Infinity, 4, 5, 3, 2.5]),
          ],
          [whole([1, 4], [0, 3, 3, 9]), ints([1, 9], -1, 11)],
          [host([1, 1], [2]), host([1, 3], [1, 2, 3])],
        ],
        constant,
      ),
    ),
    ...over(
      (sorted, x) => [tf.lowerBound(sorted, x), tf.upperBound(sorted, x)],
      [[whole([4], [0, 3, 3, 9]), ints([9], -1, 11)]],
      constant,
    ),
  ],
  Diag: [
    ...over((x) => tf.diag(x), [[floats([3])], [floats([2, 2])]]),
    ...over((x) => tf.diag(x), [[notFinite], [ints([3], -9, 9)], [bools([3])]], constant),
  ],
  LinSpace: [
    ...over((x) => tf.add(x, tf.linspace(-1, 4, 6)), [[floats([6])]]),
    ...over((x) => tf.add(x, tf.linspace(3, 4, 1)), [[floats([1])]]),
  ],
  BroadcastArgs: over(
    (a, b) => tf.broadcastArgs(a, b),
    [
      [whole([3], [2, 1, 4]), whole([2], [5, 1])],
      [whole([1], [3]), whole([3], [2, 1, 1])],
    ],
    constant,
  ),
  Einsum: [
    ...einsum('ij,jk->ik', [2, 3], [3, 4]),
    ...einsum('ij->ji', [2, 3]),
    ...einsum('ij->j', [2, 3]),
    ...einsum('ij->', [2, 3]),
    ...einsum('i,i->', [3], [3]),
    ...einsum('i,j->ji', [2], [3]),
    ...einsum('bi,bi->b', [2, 3], [2, 3]),
    ...einsum('bij,bjk->kbi', [2, 3, 4], [2, 4, 2]),
    ...einsum('abcd,bae->ed', [2, 3, 2, 2], [3, 2, 4]),
    ...einsum(' ijk , jil -> il', [2, 3, 2], [3, 2, 2]),
    ...einsum(',ij->ij', [], [2, 3]),
    ...over((a, b) => tf.einsum('ij,jk->ik', a, b), [[ints([2, 3], -9, 9), ints([3, 4], -9, 9)]], constant),
  ],
};

/** More calls of kernels that have a rule. */
export const variantCases: CaseTable = {
  GatherV2: [
    ...over(
      (x, i) => tf.gather(x, i, 1, 1),
      [
        [floats([2, 3, 2]), whole([2, 4], [0, 2, 2, 2, 1, 1, 0, 2])],
        [floats([2, 3]), whole([2], [2, 0])],
      ],
      { differentiable: 1 },
    ),
    ...over((x, i) => tf.gather(x, i, 2, 1), [[floats([2, 3, 4]), whole([2, 2], [0, 3, 3, 3])]], {
      differentiable: 1,
    }),
    ...over((x, i) => tf.gather(x, i, 1, -1), [[floats([2, 3]), whole([2, 2], [0, 2, 1, 1])]], {
      differentiable: 1,
    }),
    // tfjs's own gradient is wrong here; this one is compared with differences.
    ...over(
      (x, i) => tf.gather(x, i, 2, 2),
      [[floats([2, 2, 3, 2]), whole([2, 2, 2], [0, 2, 2, 2, 1, 1, 0, 2])]],
      {
        differentiable: 1,
      },
    ),
  ],
  ...Object.fromEntries(
    (
      [
        ['Expm1', tf.expm1],
        ['Log1p', tf.log1p],
        ['Reciprocal', tf.reciprocal],
        ['Asin', tf.asin],
        ['Acos', tf.acos],
        ['Atan', tf.atan],
        ['Sinh', tf.sinh],
        ['Asinh', tf.asinh],
        ['Acosh', tf.acosh],
        ['Atanh', tf.atanh],
        ['Softplus', tf.softplus],
      ] as const
    ).map(([kernel, f]) => [kernel, over(f, [[whole([4], [1, 2, 3, 9])], [bools([4])]], constant)]),
  ),
  IsNan: over(tf.isNaN, [[ints([4], -9, 9)]], constant),
  IsInf: over(tf.isInf, [[ints([4], -9, 9)]], constant),
  IsFinite: over(tf.isFinite, [[ints([4], -9, 9)]], constant),
  ArgMax: casted((x) => tf.argMax(x, 1), 'bool', ints([3, 4], 0, 2)),
  ArgMin: casted((x) => tf.argMin(x, 1), 'bool', ints([3, 4], 0, 2)),
  // Of truth values, any and all.
  Any: over((x) => tf.max(x, 1), [[bools([3, 4])]], constant),
  All: over((x) => tf.min(x, [0, 1]), [[bools([3, 4])]], constant),
};
