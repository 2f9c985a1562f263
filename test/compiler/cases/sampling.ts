/** @file Cases of kernels that sample images, and of maxima over taps. */
import type { Tensor } from '../../../src/compiler/index.js';
import { floats, host, ints, tf } from '../support.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const images = floats([2, 4, 5, 3], -2, 2, 71);

/** Whole, flipped, a point, partly and wholly outside, NaN; the last one of an image that is not there. */
const boxes = host(
  [7, 4],
  [
    0, 0, 1, 1, 1, 0.8, 0.1, 0, 0.3, 0.6, 0.3, 0.6, -0.3, 0.2, 0.7, 1.4, 2, 2, 3, 3, 0.1, 0.2, 0.9, 0.8, 0, 0,
    1, 1,
  ],
);
const owners = host([7], [0, 1, 1, 0, 1, 0, 5], 'int32');

const crop =
  (size: [number, number], method: 'bilinear' | 'nearest', fill?: number): CaseFunction =>
  (x) =>
    tf.image.cropAndResize(
      x,
      tf.tensor2d(boxes.data as Float32Array, [7, 4]),
      tf.tensor1d(owners.data as Int32Array, 'int32'),
      size,
      method,
      fill,
    );

/** tfjs's cpu backend transforms the first image only. */
const eachImage: (f: CaseFunction) => CaseFunction = (f) => (x, transforms) => {
  const rows = tf.split(transforms, transforms.shape[0]) as Tensor[];
  const parts = tf.split(x, x.shape[0]) as Tensor[];
  return tf.concat(parts.map((part, i) => f(part, rows[i % rows.length]) as Tensor));
};

const AFFINE = [1.1, 0.2, -1.3, -0.15, 0.9, 0.63, 0, 0];
const PROJECTIVE = [0.8, -0.3, 2.2, 0.25, 1.2, -1.6, 0.06, -0.04];
/** The third column is infinitely far. */
const VANISHING = [1, 0, 0, 0, 1, 0, -0.5, 0];
const FAR = [3.1, 0, -7.3, 0, 3.3, -6.1, 0, 0];

const transforms: Case[] = (['constant', 'nearest', 'reflect', 'wrap'] as const).flatMap((mode) =>
  (['nearest', 'bilinear'] as const).flatMap((interpolation) => {
    const f: CaseFunction = (x, t) => tf.image.transform(x, t, interpolation, mode, 0.5);
    return over(
      f,
      [
        [images, host([2, 8], [...AFFINE, ...PROJECTIVE])],
        [images, host([1, 8], FAR)],
      ],
      { oracle: eachImage(f), differentiable: 1, tolerance: { absolute: 1e-4 } },
    );
  }),
);

const dilation =
  (strides: number | [number, number], pad: 'same' | 'valid', dilations?: [number, number]): CaseFunction =>
  (x, filter) =>
    tf.dilation2d(x, filter, strides, pad, dilations);

const dilations: Case[] = [
  ...over(dilation(1, 'same'), [[floats([2, 4, 5, 2]), floats([2, 3, 2], -1, 1, 72)]]),
  ...over(dilation([2, 1], 'valid'), [[floats([1, 5, 4, 3]), floats([3, 2, 3], -1, 1, 72)]]),
  ...over(dilation(1, 'valid', [2, 1]), [[floats([1, 6, 4, 1]), floats([2, 2, 1], -1, 1, 72)]]),
  ...over(dilation(1, 'same'), [[floats([4, 3, 2]), floats([1, 1, 2], -1, 1, 72)]]),
];

const positions =
  (window: number | [number, number], strides: number, pad: 'same' | 'valid', all = false): CaseFunction =>
  (x) => {
    const { result, indexes } = tf.maxPoolWithArgmax(x, window, strides, pad, all);
    return [result, indexes] as any;
  };

/** Ties, an infinite window and one of NaN beside another. */
const rare = host(
  [1, 4, 4, 1],
  [1, 1, 0, 1, 1, 1, 1, 0, -Infinity, -Infinity, 3, -Infinity, -Infinity, -Infinity, 3, 4],
);

export const samplingCases: CaseTable = {
  CropAndResize: [
    ...over(crop([3, 4], 'bilinear'), [[images]], { differentiable: 1 }),
    ...over(crop([1, 1], 'bilinear', -7), [[images]], { differentiable: 1 }),
    ...over(crop([2, 3], 'nearest', 9), [[images]], { differentiable: 1 }),
    ...over(crop([5, 1], 'bilinear'), [[ints([2, 4, 5, 1], -9, 9)]], constant),
  ],
  Transform: [
    ...transforms,
    ...over(
      (x, t) => tf.image.transform(x, t, 'bilinear', 'constant', 0.5, [3, 7]),
      [[floats([1, 4, 5, 2]), host([1, 8], PROJECTIVE)]],
      { differentiable: 1, tolerance: { absolute: 1e-4 } },
    ),
    ...over(
      (x, t) => tf.image.transform(x, t, 'nearest', 'constant', 0.5),
      [[floats([1, 4, 5, 2]), host([1, 8], VANISHING)]],
      constant,
    ),
  ],
  RotateWithOffset: [
    ...over((x) => tf.image.rotateWithOffset(x, 0.7), [[images]]),
    ...over((x) => tf.image.rotateWithOffset(x, -2.1, [1, 2, 3], [0.2, 0.9]), [[images]]),
    ...over((x) => tf.image.rotateWithOffset(x, 1, [1, 2, 3], 0.5), [[floats([1, 3, 4, 4])]], constant),
  ],
  Dilation2D: dilations,
  Dilation2DBackpropInput: dilations.slice(0, 2),
  Dilation2DBackpropFilter: dilations.slice(0, 2),
  MaxPoolWithArgmax: [
    ...over(positions(2, 2, 'same'), [[images]], constant),
    ...over(positions([3, 2], 1, 'same', true), [[images]], constant),
    ...over(positions(2, 2, 'valid', true), [[rare], [ints([2, 4, 3, 2], -9, 9)]], constant),
  ],
};
