/** @file Cases of kernels about images: normalization, blocks, mirror images. */
import { tf } from '../../../src/compiler/index.js';
import { bools, floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const image = floats([2, 4, 6, 8], -2, 2, 41);

const norm =
  (withScale: boolean, withOffset: boolean): CaseFunction =>
  (x, mean, variance, ...rest) => {
    const scale = withScale ? rest.shift() : undefined;
    return tf.batchNorm(x, mean, variance, withOffset ? rest.shift() : undefined, scale, 0.01);
  };

/** x, mean, variance and further values of the mean's shape. */
const normed = (shape: number[], per: number[], more = 2) => [
  floats(shape, -2, 2, 42),
  floats(per, -1, 1, 43),
  floats(per, 0.5, 2, 44),
  ...[45, 46].slice(0, more).map((seed) => floats(per, -1, 1, seed)),
];

const batchNorms: Case[] = [
  ...over(norm(true, true), [
    normed([2, 3, 4, 5], [5]),
    normed([4, 3], [3]),
    normed([2, 3, 4], [4]),
    // As large as x: one value each.
    normed([2, 3, 4, 2], [2, 3, 4, 2]),
    // Of the same rank, with one value by channel.
    normed([2, 3, 4, 2], [1, 1, 1, 2]),
  ]),
  ...over(norm(false, true), [normed([2, 3, 4, 5], [5], 1)]),
  ...over(norm(true, false), [normed([2, 3, 4, 5], [5], 1)]),
  ...over(norm(false, false), [normed([2, 3, 4, 5], [5], 0)]),
  // 0 and less: infinite and NaN.
  ...over(
    (x, mean) => tf.batchNorm(x, mean, tf.tensor1d([0, -1, 1]), undefined, undefined, 1e-9),
    [
      [
        host([2, 3], [1, 2, Number.NaN, 0, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]),
        host([3], [0, 0, 1]),
      ],
    ],
    constant,
  ),
];

const lrn =
  (radius: number, bias: number, alpha: number, beta: number): CaseFunction =>
  (x) =>
    tf.localResponseNormalization(x, radius, bias, alpha, beta);

const lrns: Case[] = [
  ...over(lrn(2, 1, 0.7, 0.5), [[image], [floats([2, 3, 1])]]),
  ...over(lrn(0, 0.5, 1, 0.75), [[floats([1, 2, 2, 3])]]),
  // Every channel is a neighbour of every other one.
  ...over(lrn(50, 1, 0.3, 1.5), [[floats([1, 2, 3, 4])]]),
  // Norms below 0.
  ...over(lrn(1, -1, 0.1, 0.5), [[floats([1, 1, 2, 4])]], constant),
];

const channelsFirst = over((x) => tf.depthToSpace(x, 2, 'NCHW'), [[floats([2, 8, 3, 2])]], {
  oracle: (x) => tf.transpose(tf.depthToSpace(tf.transpose(x, [0, 2, 3, 1]) as any, 2), [0, 3, 1, 2]),
  ...constant,
});

const mirror =
  (paddings: [number, number][], mode: 'reflect' | 'symmetric'): CaseFunction =>
  (x) =>
    tf.mirrorPad(x, paddings, mode);

export const imageCases: CaseTable = {
  FusedBatchNorm: batchNorms,
  LRN: lrns,
  LRNGrad: lrns.slice(0, 2),
  SpaceToBatchND: [
    ...over(
      (x) =>
        tf.spaceToBatchND(
          x,
          [2, 3],
          [
            [0, 0],
            [1, 2],
          ],
        ),
      [[floats([2, 4, 6, 3])]],
    ),
    ...over((x) => tf.spaceToBatchND(x, [2], [[1, 0]]), [[floats([2, 3])], [floats([1, 5, 2, 2])]]),
    ...over(
      (x) =>
        tf.spaceToBatchND(
          x,
          [1, 2, 1],
          [
            [0, 1],
            [1, 0],
            [0, 0],
          ],
        ),
      [[ints([2, 2, 3, 2], -9, 9)]],
      constant,
    ),
  ],
  BatchToSpaceND: [
    ...over(
      (x) =>
        tf.batchToSpaceND(
          x,
          [2, 3],
          [
            [0, 1],
            [1, 2],
          ],
        ),
      [[floats([12, 2, 3, 3])]],
    ),
    ...over((x) => tf.batchToSpaceND(x, [2], [[1, 0]]), [[floats([4, 3])], [floats([2, 5, 2, 2])]]),
    ...over(
      (x) =>
        tf.batchToSpaceND(
          x,
          [2, 2],
          [
            [0, 0],
            [0, 0],
          ],
        ),
      [[ints([4, 1, 3], -9, 9)]],
      constant,
    ),
  ],
  DepthToSpace: [
    ...over((x) => tf.depthToSpace(x, 2), [[floats([2, 2, 3, 8])], [floats([1, 1, 1, 4])]]),
    ...channelsFirst,
  ],
  FlipLeftRight: over((x) => tf.image.flipLeftRight(x), [[floats([2, 3, 4, 3])], [floats([1, 1, 1, 1])]]),
  MirrorPad: [
    ...over(
      mirror(
        [
          [2, 1],
          [0, 3],
        ],
        'reflect',
      ),
      [[floats([3, 4])]],
    ),
    ...over(
      mirror(
        [
          [3, 3],
          [0, 4],
        ],
        'symmetric',
      ),
      [[floats([3, 4])]],
    ),
    ...over(
      mirror(
        [
          [0, 0],
          [1, 1],
          [2, 0],
          [0, 0],
        ],
        'reflect',
      ),
      [[floats([2, 2, 3, 2])]],
    ),
    ...over(
      mirror(
        [
          [0, 0],
          [0, 0],
        ],
        'reflect',
      ),
      [[floats([2, 2])]],
      constant,
    ),
    ...over(mirror([[2, 1]], 'symmetric'), [[ints([3], -9, 9)], [bools([4])]], constant),
  ],
};
