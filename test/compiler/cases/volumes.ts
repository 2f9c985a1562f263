/** @file Cases of convolutions and poolings of volumes. */
import { type HostTensor, tf } from '../../../src/compiler/index.js';
import { floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

type Triple = number | [number, number, number];
type Form = readonly [input: number[], filter: number[], strides: Triple, pad: unknown, dilations?: Triple];

const CONVOLUTIONS: readonly Form[] = [
  [[2, 3, 4, 3, 2], [2, 3, 2, 2, 3], 1, 'same'],
  [[1, 4, 3, 4, 2], [2, 2, 3, 2, 2], 1, 'valid'],
  [[1, 5, 4, 5, 1], [3, 2, 3, 1, 2], [2, 1, 2], 'same'],
  [[1, 3, 3, 3, 2], [1, 1, 1, 2, 3], 2, 'valid'],
  // tfjs's 'same' skips cells in front where strides are larger than windows.
  [[1, 5, 4, 8, 1], [1, 1, 1, 1, 2], [3, 1, 3], 'same'],
  [[1, 5, 4, 5, 1], [2, 2, 2, 1, 1], 1, 'valid', [2, 1, 3]],
  [[1, 4, 4, 4, 2], [2, 3, 2, 2, 1], 1, 'same', 2],
  // Cells at the end that no window reads.
  [[1, 4, 5, 6, 1], [1, 2, 1, 1, 1], [3, 3, 4], 'valid'],
  // A window larger than its input.
  [[1, 1, 2, 1, 1], [3, 3, 3, 1, 1], 1, 'same'],
];

const conv = ([input, filter, strides, pad, dilations]: Form): Case[] =>
  over(
    (x, w) => tf.conv3d(x, w, strides, pad as 'same', 'NDHWC', dilations ?? 1),
    [[floats(input, -1, 1, 51), floats(filter, -1, 1, 52)]],
  );

const transposed: Case[] = [
  ...over(
    (y, w) => tf.conv3dTranspose(y, w, [1, 5, 4, 5, 2], 2, 'same'),
    [[floats([1, 3, 2, 3, 2], -1, 1, 53), floats([3, 2, 3, 2, 2], -1, 1, 54)]],
  ),
];

const convolutions = CONVOLUTIONS.flatMap(conv);

type Pool = readonly [input: number[], window: Triple, strides: Triple, pad: 'same' | 'valid' | number];

const POOLS: readonly Pool[] = [
  [[2, 4, 4, 6, 2], 2, 2, 'valid'],
  [[1, 3, 5, 4, 2], 2, 2, 'same'],
  [[1, 4, 3, 5, 1], [3, 2, 3], 1, 'same'],
  [[1, 5, 4, 3, 2], [2, 1, 3], [2, 3, 1], 'valid'],
  [[1, 4, 4, 4, 1], 3, 2, 1],
  [[1, 5, 4, 4, 1], 1, 3, 'same'],
];

/** Values in random order, far enough apart for finite differences. */
function distinct(shape: number[]): HostTensor {
  const { data } = floats(shape, -2, 2, 55);
  const sorted = [...data].sort((a, b) => a - b);
  return host(
    shape,
    Array.from(data, (x) => sorted.indexOf(x) / 16 - 2),
  );
}

const pools = (f: (x: any, pool: Pool) => any, more: readonly Pool[] = []): Case[] =>
  [...POOLS, ...more].flatMap((pool) => over((x) => f(x, pool), [[distinct(pool[0])]]));

const max = (x: any, [, window, strides, pad]: Pool) => tf.maxPool3d(x, window, strides, pad);
const average = (x: any, [, window, strides, pad]: Pool) => tf.avgPool3d(x, window, strides, pad);

/**
 * tfjs's gradient kernels: the average of whole windows, and the maximum of those of equal sides; of equal
 * ones the last, here the first.
 */
const gradient =
  (kernel: string, filterSize: number, strides: number): CaseFunction =>
  (dy, input) => {
    const attrs = { filterSize, strides, pad: 'same' };
    const output = tf.maxPool3d(input, filterSize, strides, 'same');
    return tf.engine().runKernel(kernel, { dy, input, output }, attrs) as any;
  };

export const volumeCases: CaseTable = {
  Conv3D: [
    ...convolutions,
    ...over(
      (x, w) => tf.conv3d(x, w, 1, 'valid'),
      [[floats([3, 4, 3, 2]), floats([2, 2, 2, 2, 2], -1, 1, 52)]],
    ),
    ...over(
      (x, w) => tf.conv3d(x, w, 1, 'valid'),
      [[ints([1, 3, 3, 2, 1], -9, 9), ints([2, 2, 1, 1, 2], -9, 9)]],
      constant,
    ),
  ],
  Conv3DBackpropInputV2: [convolutions[0]!, ...transposed],
  Conv3DBackpropFilterV2: [convolutions[2]!],
  MaxPool3D: [
    ...pools(max),
    ...over((x) => max(x, POOLS[0]!), [[ints([1, 4, 4, 4, 2], -9, 9)]], constant),
    ...over((x) => tf.maxPool3d(x, 2, 1, 'valid'), [[floats([3, 3, 2, 2])]], constant),
  ],
  MaxPool3DGrad: over(
    gradient('MaxPool3DGrad', 3, 1),
    [[floats([1, 4, 3, 5, 1]), distinct([1, 4, 3, 5, 1])]],
    constant,
  ),
  // Some windows hold padding alone.
  AvgPool3D: pools(average, [[[1, 2, 1, 3, 2], 2, 1, 2]]),
  AvgPool3DGrad: over(
    gradient('AvgPool3DGrad', 2, 2),
    [[floats([1, 2, 3, 2, 2]), floats([1, 3, 5, 4, 2])]],
    constant,
  ),
};
