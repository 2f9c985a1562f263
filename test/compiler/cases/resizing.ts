/** @file Cases of resized images. */
import { tf } from '../../../src/compiler/index.js';
import { floats, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

type Form = readonly [input: number[], size: [number, number], align: boolean, half: boolean];

const FORMS: readonly Form[] = [
  [[2, 3, 4, 2], [6, 8], false, false],
  [[2, 3, 4, 2], [5, 7], true, false],
  [[2, 3, 4, 2], [7, 9], false, true],
  [[1, 7, 5, 1], [3, 2], false, false],
  [[1, 7, 5, 1], [3, 2], true, false],
  [[1, 8, 6, 1], [3, 4], false, true],
  [[1, 3, 4, 2], [3, 4], false, false],
  [[1, 4, 1, 2], [1, 3], true, false],
  [[1, 1, 1, 3], [3, 2], false, true],
  // To one row or column, which no corner aligns.
  [[1, 5, 4, 1], [1, 1], true, false],
];

const cases = (f: (form: Form) => CaseFunction): Case[] =>
  FORMS.flatMap((form) => over(f(form), [[floats(form[0], -2, 2, 61)]]));

const bilinear =
  ([, size, align, half]: Form): CaseFunction =>
  (x) =>
    tf.image.resizeBilinear(x, size, align, half);

const nearest =
  ([, size, align, half]: Form): CaseFunction =>
  (x) =>
    tf.image.resizeNearestNeighbor(x, size, align, half);

/** tfjs's gradient kernels, for one square image: of others, they swap height and width, or read beyond the first image. */
const gradient =
  (kernel: string, alignCorners: boolean): CaseFunction =>
  (dy, images) =>
    tf.engine().runKernel(kernel, { dy, images }, { alignCorners, halfPixelCenters: false }) as any;

const gradients = (kernel: string): Case[] =>
  [false, true].flatMap((align) =>
    over(
      gradient(kernel, align),
      [
        [floats([1, 7, 5, 2]), floats([1, 3, 3, 2])],
        [floats([1, 2, 3, 2]), floats([1, 6, 6, 2])],
      ],
      constant,
    ),
  );

export const resizingCases: CaseTable = {
  ResizeBilinear: [
    ...cases(bilinear),
    ...over(bilinear(FORMS[0]!), [[ints([1, 3, 4, 1], -9, 9)], [floats([3, 4, 1])]], constant),
  ],
  ResizeBilinearGrad: gradients('ResizeBilinearGrad'),
  ResizeNearestNeighbor: [
    ...cases(nearest),
    ...over(nearest(FORMS[0]!), [[ints([1, 3, 4, 1], -9, 9)]], constant),
  ],
  ResizeNearestNeighborGrad: gradients('ResizeNearestNeighborGrad'),
};
