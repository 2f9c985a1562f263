/** @file Cases of reductions, softmax, products, and of what sorts, accumulates or addresses along an axis. */
import { ops, tf } from '../../../src/compiler/index.js';
import { bools, floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const FORMS: [number[], number[] | number | undefined, boolean][] = [
  [[], undefined, false],
  [[5], 0, false],
  [[2, 3], undefined, false],
  [[2, 3], [], false],
  [[2, 3], 1, true],
  [[2, 3], -1, false],
  [[2, 3, 4], [0, 2], false],
  [[2, 3, 4], 1, true],
  [[1, 3, 1], [0, 2], true],
];

/** tfjs differentiates a reduction over a list of axes and over all; an empty list is the identity. */
const reduction = (reduce: (x: any, axis: any, keepDims: boolean) => any, rest: Partial<Case> = {}): Case[] =>
  FORMS.flatMap(([shape, axis, keepDims]) => over((x) => reduce(x, axis, keepDims), [[floats(shape)]], rest));

const reductionInt = (reduce: (x: any, axis: any, keepDims: boolean) => any, make = ints): Case[] =>
  FORMS.flatMap(([shape, axis, keepDims]) =>
    over((x) => reduce(x, axis, keepDims), [[make(shape, -4, 4)]], constant),
  );

const boolsOf = (shape: number[]) => bools(shape);

/** Among equal values the first one counts. */
const ties = host([2, 4], [1, 3, 3, 0, 2, 2, 2, 2]);

const along = (f: CaseFunction): Case[] =>
  over(f, [[floats([4], -5, 5)], [floats([2, 3], -5, 5)], [floats([2, 3, 5])]]);

const logSoftmaxKernel: CaseFunction = (logits) =>
  tf.engine().runKernel('LogSoftmax', { logits }, { axis: logits.rank - 1 }) as any;

const product = (transposeA: boolean, transposeB: boolean, ...shapes: [number[], number[]][]): Case[] =>
  over(
    (a, b) => tf.matMul(a, b, transposeA, transposeB),
    shapes.map(([a, b]) => [floats(a), floats(b, -2, 2, 5)]),
  );

/** A recurrent layer: the gradient of its weight is a sum of one product for each step, those of its inputs are a stack. */
const recurrent =
  (axis: number): CaseFunction =>
  (x, w) => {
    const steps = tf.unstack(x, axis);
    return steps.reduce((state, step) => tf.tanh(tf.add(step, tf.matMul(state as any, w))), steps[0]!);
  };

const topThree: CaseFunction = (x) => {
  const { values, indices } = tf.topk(x, 3);
  return [values, indices];
};

/** Over axes between others, of as many columns as a row is added by, and of a transposed operand. */
const between = (reduce: typeof tf.sum): Case[] => [
  ...over((x) => reduce(x, [1, 2]), [[floats([3, 2, 3, 9])]]),
  ...over((x) => reduce(tf.transpose(x, [0, 2, 1]), 1, true), [[floats([2, 8, 3])]]),
];

export const reduceCases: CaseTable = {
  Sum: [
    ...between(tf.sum),
    ...reduction(tf.sum),
    ...reductionInt(tf.sum),
    ...over((x) => tf.sum(x, 0), [[bools([5, 2])]], constant),
  ],
  Mean: [
    ...between(tf.mean),
    ...reduction(tf.mean),
    ...reductionInt(tf.mean),
    ...over((x) => tf.mean(x, 0), [[bools([5, 2])]], constant),
  ],
  Max: [...reduction(tf.max), ...reductionInt(tf.max)],
  Min: [...reduction(tf.min), ...reductionInt(tf.min)],
  Prod: [
    ...reduction(tf.prod),
    ...reductionInt(tf.prod),
    // With zeros, whose gradient is the product of all others.
    ...over(
      (x) => tf.prod(x, -1),
      [[host([3, 4], [0, 2, 0.5, -1, 0, 1, 0, 2, 1, -2, 0.5, 3])], [host([5], [2, 1, -1, 0, 0.5])]],
    ),
  ],
  All: reductionInt(tf.all, boolsOf),
  Any: reductionInt(tf.any, boolsOf),
  ArgMax: [
    ...over(
      (x) => tf.argMax(x, -1),
      [[floats([2, 7])], [floats([5])], [ints([3, 4], 0, 3)], [ties]],
      constant,
    ),
    ...over((x) => tf.argMax(x, 0), [[floats([4, 3])]], constant),
  ],
  ArgMin: [
    ...over((x) => tf.argMin(x, -1), [[floats([2, 7])], [ints([3, 4], 0, 3)], [ties]], constant),
    ...over((x) => tf.argMin(x, 1), [[floats([2, 3, 4])]], constant),
  ],
  Softmax: along((x) => tf.softmax(x)),
  LogSoftmax: [
    ...over(logSoftmaxKernel, [[floats([4], -5, 5)], [floats([2, 3, 5])]], {
      oracle: (x) => tf.logSoftmax(x),
    }),
    // The public function spells the kernel out.
    ...over((x) => [tf.logSoftmax(x), logSoftmaxKernel(x)].flat(), [[floats([2, 3])]], {
      oracle: (x) => [tf.logSoftmax(x), tf.logSoftmax(x)],
    }),
  ],
  Cumsum: [
    ...over((x) => tf.cumsum(x, 0), [[floats([5])], [floats([3, 2])]]),
    // tfjs's cpu kernel does not take a negative axis.
    ...over((x) => tf.cumsum(x, -1, true), [[floats([2, 5])]], { oracle: (x) => tf.cumsum(x, 1, true) }),
    ...over((x) => tf.cumsum(x, 0), [[floats([3, 3])]]),
    ...over((x) => tf.cumsum(x, 1, false, true), [[floats([2, 3, 2])]]),
    ...over((x) => tf.cumsum(x, 0, true, true), [[ints([6], -4, 4)], [bools([6])]], constant),
  ],
  TopK: [
    ...over(topThree, [[floats([7])], [floats([2, 5])]]),
    ...over(topThree, [[ints([2, 9], 0, 4)], [ties]], constant),
  ],
  BatchMatMul: [
    ...[0, 1].flatMap((axis) =>
      over(recurrent(axis), [[floats(axis ? [2, 4, 8] : [4, 2, 8]), floats([8, 8], -1, 1, 5)]]),
    ),
    ...product(
      false,
      false,
      [
        [2, 3],
        [3, 4],
      ],
      [
        [1, 1],
        [1, 1],
      ],
      [
        [2, 5, 3],
        [2, 3, 4],
      ],
      [
        [2, 2, 3, 2],
        [2, 2, 2, 3],
      ],
    ),
    ...product(
      true,
      false,
      [
        [3, 2],
        [3, 4],
      ],
      [
        [2, 3, 5],
        [2, 3, 4],
      ],
    ),
    ...product(
      false,
      true,
      [
        [2, 3],
        [4, 3],
      ],
      [
        [2, 2, 3, 2],
        [2, 2, 3, 2],
      ],
    ),
    ...product(
      true,
      true,
      [
        [3, 2],
        [4, 3],
      ],
      [
        [2, 3, 5],
        [2, 4, 3],
      ],
    ),
    ...product(
      false,
      true,
      [
        [3, 2, 4],
        [1, 3, 4],
      ],
      [
        [3, 2, 4],
        [3, 4],
      ],
      [
        [2, 4],
        [3, 5, 4],
      ],
    ),
    // tfjs's cpu kernel broadcasts one axis only.
    ...over((a, b) => tf.matMul(a, b), [[floats([2, 1, 2, 3]), floats([3, 3, 2])]], {
      oracle: (a, b) => tf.matMul(tf.tile(a, [1, 3, 1, 1]), tf.tile(tf.expandDims(b, 0), [2, 1, 1, 1])),
      differentiable: 0,
    }),
    ...over((a, b) => tf.matMul(a, b), [[ints([2, 3], -4, 4), ints([3, 2], -4, 4)]], constant),
    ...over((a, b) => tf.matMul(a, b, true, true), [[ints([3, 2], -4, 4), ints([4, 3], -4, 4)]], constant),
  ],
};

const ids = host([5], [2, 0, 2, 1, 2], 'int32');

export const indexingCases: CaseTable = {
  GatherV2: [
    // Indices that depend on what is differentiated, which has no slope by them.
    ...over((x) => tf.gather(x, tf.argMax(x, 0), 1), [[floats([2, 3])]]),
    ...over((x) => tf.gather(x, tf.reshape(tf.topk(x, 2).indices, [-1]), 1), [[floats([2, 3])]]),
    ...over(
      (x) => {
        const [first, last] = [tf.argMax(x, 0), tf.argMin(x, 0)];
        const next = tf.mod(tf.add(first, tf.scalar(1, 'int32')), tf.scalar(3, 'int32'));
        const chosen = tf.where(tf.greater(first, last), tf.gather(next, last), tf.maximum(first, last));
        return tf.gather(x, tf.reshape(tf.stack([chosen, next], 1), [-1]) as any, 1);
      },
      [[floats([3, 3])]],
    ),
    ...over(
      (x, i) => tf.gather(x, i),
      [
        [floats([3, 4]), ids],
        [floats([3]), ids],
      ],
      { differentiable: 1 },
    ),
    ...over((x, i) => tf.gather(x, i, 1), [[floats([2, 3, 2]), ids]], { differentiable: 1 }),
    ...over((x, i) => tf.gather(x, i), [[floats([6, 2]), ints([2, 3], 0, 6)]], { differentiable: 1 }),
    ...over(
      (x, i) => tf.gather(x, i),
      [
        [ints([3, 2], 0, 9), ids],
        [bools([3, 2]), ids],
      ],
      constant,
    ),
    // Indices that the same loop computes, by rows and by columns, and several of one table.
    ...[
      (i: any) => tf.add(i, tf.scalar(1, 'int32')),
      (i: any) => tf.cast(tf.mul(tf.cast(i, 'float32'), 1.5), 'int32'),
      (i: any) => tf.maximum(i, tf.scalar(1, 'int32')),
      (i: any) => tf.clipByValue(i, 1, 2),
      (i: any) => tf.where(tf.greater(i, tf.scalar(1, 'int32')), i, tf.scalar(3, 'int32')),
      (i: any) => tf.gather(tf.add(i, tf.scalar(1, 'int32')), i),
    ].flatMap((computed) =>
      [0, 1].flatMap((axis) =>
        over(
          (x, i) => [tf.gather(x, computed(i), axis), tf.mul(tf.gather(x, computed(i), axis), 2)],
          [[floats([4, 4]), ints([5], 0, 3)]],
          { differentiable: 1 },
        ),
      ),
    ),
    ...over((x, i) => ops.embeddingLookup(x, tf.add(i, tf.scalar(1, 'int32'))), [[floats([5, 8]), ids]], {
      differentiable: 1,
    }),
    ...over(
      (x, i, j) => tf.add(tf.gather(x, i), tf.gather(x, j)),
      [[floats([4, 8]), ints([4], 0, 4, 7), ints([4], 0, 4, 8)]],
      { differentiable: 1 },
    ),
    ...over((x) => tf.gather(x, tf.argMax(x, 1)), [[floats([8, 4])]], constant),
  ],
  UnsortedSegmentSum: [
    ...over(
      (x, i) => tf.unsortedSegmentSum(x, i, 4),
      [
        [floats([5, 3]), ids],
        [floats([5]), ids],
        [floats([5, 2, 2]), ids],
      ],
      { differentiable: 1 },
    ),
    // Rows of negative ids are left out.
    ...over(
      (x, i) => tf.unsortedSegmentSum(x, i, 3),
      [[floats([6, 2]), { shape: [6], dtype: 'int32', data: Int32Array.of(-1, 2, -7, 0, 2, -(2 ** 31)) }]],
      { differentiable: 1 },
    ),
    // tfjs's cpu kernel makes int32 float32.
    ...over((x, i) => tf.unsortedSegmentSum(x, i, 4), [[ints([5, 3], 0, 9), ids]], {
      ...constant,
      oracle: (x, i) => tf.cast(tf.unsortedSegmentSum(x, i, 4), 'int32'),
    }),
    ...over(
      (x, i) => tf.unsortedSegmentSum(x, i, 700),
      [
        [floats([5, 3]), ids],
        [floats([5]), ids],
        [floats([5, 2, 2]), ids],
      ],
      { differentiable: 1 },
    ),
  ],
  OneHot: [
    // What is not in range is off, from either end.
    ...over(
      (i) => tf.oneHot(i, 4),
      [[host([5], [-1, 4, 0, -4, 9], 'int32')], [host([], [-2], 'int32')]],
      constant,
    ),
    ...over((i) => tf.oneHot(i, 4), [[ids], [ints([2, 3], 0, 4)], [ints([], 0, 4)]], constant),
    ...over(
      (i) => [tf.oneHot(i, 3, 5, -1), tf.oneHot(i, 3, 1, 0, 'int32'), tf.oneHot(i, 3, 1, 0, 'bool')],
      [[ids]],
      constant,
    ),
    ...over((x, i) => tf.mul(x, tf.oneHot(i, 3)), [[floats([5, 3]), ids]], { differentiable: 1 }),
  ],
};
