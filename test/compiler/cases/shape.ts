/** @file Cases of the operations that move, repeat or cut data. */
import { ops, tf } from '../../../src/compiler/index.js';
import { bools, floats, ints } from '../values.js';
import { type CaseFunction, type CaseTable, constant, over } from './case.js';

/** `f` on a float32 tensor with its gradient, and on int32 and bool without. */
const anyDtype = (f: CaseFunction, ...shapes: number[][]) => [
  ...over(
    f,
    shapes.map((shape) => [floats(shape)]),
  ),
  ...over(f, [[ints(shapes[0]!, -9, 9)], [bools(shapes[0]!)]], constant),
];

const kernel =
  (name: string, attrs: object): CaseFunction =>
  (x) =>
    tf.engine().runKernel(name, { x }, attrs as any) as any;

export const shapeCases: CaseTable = {
  Reshape: [
    ...anyDtype((x) => tf.reshape(x, [3, -1]), [2, 6], [3, 1, 4], [12]),
    ...over((x) => tf.reshape(x, []), [[floats([1, 1])]]),
    ...over((x) => tf.squeeze(x), [[floats([1, 3, 1])]]),
  ],
  ExpandDims: [
    ...anyDtype((x) => tf.expandDims(x, 0), [2, 3], []),
    ...anyDtype((x) => tf.expandDims(x, -1), [2, 3]),
    ...anyDtype((x) => tf.expandDims(x, 1), [4]),
  ],
  Transpose: [
    ...anyDtype((x) => tf.transpose(x), [2, 3], [2, 3, 4]),
    ...anyDtype((x) => tf.transpose(x, [0, 2, 1, 3]), [2, 3, 4, 5], [1, 1, 2, 1]),
    ...anyDtype((x) => tf.transpose(x, [2, 0, 1]), [2, 3, 4]),
  ],
  // tf.broadcastTo is written with Tile; gradients of other operations call this kernel by its name.
  BroadcastTo: over(kernel('BroadcastTo', { shape: [2, 3, 4], inputShape: [3, 1] }), [[floats([3, 1])]], {
    oracle: (x) => tf.broadcastTo(x, [2, 3, 4]),
    differentiable: 0,
  }),
  Tile: [
    ...anyDtype((x) => tf.tile(x, [2, 3]), [2, 3], [1, 1]),
    ...anyDtype((x) => tf.tile(x, [3]), [4]),
    ...over((x) => tf.tile(x, [2, 1, 3, 1, 2]), [[floats([1, 2, 1, 3, 2])]]),
    ...over((x) => tf.tile(x, [1, 2, 1, 1, 1, 3]), [[floats([2, 1, 1, 2, 1, 2])]]),
    ...anyDtype((x) => tf.tile(x, [1, 2, 1, 3]), [2, 1, 2, 2]),
    ...over((x) => tf.broadcastTo(x, [2, 3, 4]), [[floats([3, 1])], [floats([4])], [floats([])]]),
  ],
  Slice: [
    ...anyDtype((x) => tf.slice(x, [1, 0], [1, -1]), [3, 4], [2, 1]),
    ...anyDtype((x) => tf.slice(x, [2]), [5], [3, 2]),
    ...over((x) => tf.slice(x, 1, 2), [[floats([4])]]),
    ...over((x) => tf.slice(x, [0, 1, 2], [2, 2, 1]), [[floats([2, 3, 4])]]),
  ],
  StridedSlice: [
    ...anyDtype((x) => tf.stridedSlice(x, [0, 3], [3, 0], [2, -1]), [3, 4]),
    ...anyDtype((x) => tf.stridedSlice(x, [-1], [-5], [-2]), [6]),
    ...anyDtype((x) => tf.stridedSlice(x, [0], [0], [-1], 1, 1), [5]),
    // tfjs's cpu kernel reads the wrong elements where an axis is dropped and another has a step.
    ...over((x) => tf.stridedSlice(x, [1, 0], [2, 3], [1, 2], 0, 0, 0, 0, 1), [[floats([3, 4])]], {
      oracle: (x) => tf.reshape(tf.stridedSlice(x, [1, 0], [2, 3], [1, 2]), [2]),
      differentiable: 0,
    }),
    ...anyDtype((x) => tf.stridedSlice(x, [0, 1], [0, 3], [1, 1], 0, 0, 1), [2, 3, 4]),
  ],
  SplitV: [
    ...anyDtype((x) => tf.split(x, 2, 1), [3, 4], [1, 2]),
    ...anyDtype((x) => tf.split(x, [1, 2, 1], -1), [2, 4], [4]),
    ...over((x) => tf.split(x, 3, 0)[1]!, [[floats([6, 2])]]),
  ],
  Concat: [
    ...over(
      (...xs) => tf.concat(xs, 0),
      [
        [floats([2, 3]), floats([1, 3], -2, 2, 5)],
        [floats([2]), floats([3], -2, 2, 5), floats([1], -2, 2, 6)],
      ],
    ),
    ...over((...xs) => tf.concat(xs, -1), [[floats([2, 3]), floats([2, 1], -2, 2, 5)]]),
    ...over((...xs) => tf.concat(xs, 1), [[ints([2, 2], 0, 9), ints([2, 3], 0, 9)]], constant),
  ],
  Pack: [
    ...over(
      (...xs) => tf.stack(xs, 0),
      [
        [floats([2, 3]), floats([2, 3], -2, 2, 5)],
        [floats([]), floats([])],
      ],
    ),
    ...over((...xs) => tf.stack(xs, -1), [[floats([2, 3]), floats([2, 3], -2, 2, 5)], [floats([4])]]),
    ...over((...xs) => tf.stack(xs, 1), [[bools([3]), bools([3], 9)]], constant),
  ],
  Unpack: [
    ...anyDtype((x) => tf.unstack(x, 0), [3, 2], [1, 4]),
    ...anyDtype((x) => tf.unstack(x, -1), [2, 3], [2]),
    ...over((x) => tf.unstack(x, 1)[1]!, [[floats([2, 3, 4])]]),
  ],
  PadV2: [
    ...over(
      (x) =>
        tf.pad(x, [
          [1, 0],
          [0, 2],
        ]),
      [[floats([2, 3])]],
    ),
    ...over((x) => tf.pad(x, [[2, 1]], 0.5), [[floats([4])]]),
    ...over(
      (x) =>
        tf.pad(
          x,
          [
            [0, 1],
            [1, 1],
          ],
          7,
        ),
      [[ints([2, 2], 0, 9)]],
      constant,
    ),
  ],
  Reverse: [
    ...anyDtype((x) => tf.reverse(x, 0), [3, 2], [5]),
    ...anyDtype((x) => tf.reverse(x, [0, -1]), [3, 2], [2, 1, 3]),
    ...over((x) => tf.reverse(x), [[floats([2, 3])]]),
  ],
  Roll: [
    ...anyDtype((x) => ops.roll(x, 0), [3, 2], [5]),
    ...anyDtype((x) => ops.roll(x, 1, -1), [3, 2], [2, 4, 3]),
  ],
  Fill: [
    ...over((x) => tf.mul(x, tf.fill([2, 3], 2.5)), [[floats([2, 3])], [floats([3])]]),
    ...over(
      () => [tf.fill([3], Number.NaN), tf.fill([3], Number.POSITIVE_INFINITY), tf.fill([], -Infinity)],
      [[]],
      constant,
    ),
    ...over(
      () => [tf.fill([2], 7, 'int32'), tf.fill([2], 1, 'bool'), tf.zeros([2]), tf.ones([2, 2], 'int32')],
      [[]],
      constant,
    ),
  ],
  ZerosLike: anyDtype(tf.zerosLike, [2, 3], []),
  OnesLike: anyDtype(tf.onesLike, [2, 3], []),
  Range: over(
    () => [
      tf.range(0, 5),
      tf.range(4, -2),
      tf.range(2, 0, 1, 'int32'),
      tf.range(5, -3, -2, 'int32'),
      tf.range(0, 1, 0.1),
      tf.range(0, 2 ** 20 + 3, 1, 'int32'),
    ],
    [[]],
    constant,
  ),
};
