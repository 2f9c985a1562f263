/** @file Cases of convolutions and poolings: windows of all kinds, against tfjs's own kernels. */

import { type HostTensor, tf } from '../../../src/compiler/index.js';
import { callComposite } from '../../../src/compiler/ops/composite.js';
import { floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

/** Windows: strides, padding and dilations as tfjs takes them. */
type Form = readonly [
  input: number[],
  filter: number[],
  strides: number | [number, number],
  pad: unknown,
  dilations?: number | [number, number],
];

const explicit = (top: number, bottom: number, left: number, right: number): number[][] => [
  [0, 0],
  [top, bottom],
  [left, right],
  [0, 0],
];

const CONVOLUTIONS: readonly Form[] = [
  [[2, 5, 6, 3], [3, 3, 3, 4], 1, 'same'],
  [[2, 5, 6, 3], [3, 2, 3, 4], 1, 'valid'],
  [[1, 7, 6, 2], [3, 3, 2, 3], 2, 'same'],
  [[1, 7, 6, 2], [2, 3, 2, 3], [2, 1], 'valid'],
  // Cells that no window reads, in the middle and at the end.
  [[2, 8, 9, 1], [2, 1, 1, 2], [3, 4], 'valid'],
  [[1, 7, 8, 2], [3, 2, 2, 3], 1, 'same', 2],
  [[1, 9, 7, 2], [3, 3, 2, 1], 1, 'valid', [2, 3]],
  [[2, 4, 4, 3], [1, 1, 3, 5], 1, 'same'],
  [[2, 5, 4, 3], [1, 1, 3, 2], 2, 'valid'],
  [[1, 5, 6, 2], [3, 3, 2, 2], 2, explicit(1, 2, 0, 3)],
  [[1, 4, 4, 2], [3, 3, 2, 2], 1, 2],
  [[1, 1, 1, 2], [3, 3, 2, 2], 1, 'same'],
  [[3, 1, 9, 2], [1, 4, 2, 3], [1, 2], 'same'],
  // Fewer windows than filters, so that taps' gradients are added up where they belong.
  [[1, 2, 3, 2], [3, 3, 2, 7], 1, 'same'],
  [[1, 4, 3, 2], [2, 3, 2, 16], 1, explicit(1, 0, 2, 1)],
  [[1, 3, 2, 2], [2, 2, 2, 6], 1, 'same', 2],
  // A window larger than its input.
  [[1, 2, 3, 1], [5, 5, 1, 2], 3, 'same'],
];

const operands = ([input, filter]: Form) => [floats(input, -1, 1, 31), floats(filter, -1, 1, 32)];

const conv: (form: Form) => CaseFunction =
  ([, , strides, pad, dilations]) =>
  (x, w) =>
    tf.conv2d(x, w, strides, pad as 'same', 'NHWC', dilations ?? 1);

const depthwise: (form: Form) => CaseFunction =
  ([, , strides, pad, dilations]) =>
  (x, w) =>
    tf.depthwiseConv2d(x, w, strides, pad as 'same', 'NHWC', dilations ?? 1);

/** With filters [height, width, C, M], M from 1 to 3. */
const DEPTHWISE: readonly Form[] = CONVOLUTIONS.map(([input, [height, width], ...windows], i) => [
  input,
  [height!, width!, input[3]!, 1 + (i % 3)],
  ...windows,
]);

/** As many channels as vectors take: whole ones, several at once, and a rest; in one case, of an input that is transposed. */
const BROAD: readonly Form[] = [
  [[2, 5, 6, 8], [3, 3, 8, 1], 1, 'same'],
  [[1, 3, 2, 75], [3, 2, 75, 1], [2, 1], explicit(1, 2, 0, 3)],
  [[2, 6, 6, 13], [2, 3, 13, 1], 1, 'valid', [3, 2]],
  // Cells that no window reads, and windows of padding alone.
  [[1, 5, 6, 11], [2, 1, 11, 1], [3, 4], 'valid'],
  [[1, 2, 3, 9], [5, 5, 9, 1], 3, 'same'],
  [[1, 2, 2, 10], [1, 1, 10, 1], 1, 2],
];

const each = (forms: readonly Form[], f: (form: Form) => CaseFunction): Case[] =>
  forms.flatMap((form) => over(f(form), [operands(form)]));

/** A transposed convolution is the gradient of one, and has one itself. */
const transposed: Case[] = [
  ...over(
    (y, w) => tf.conv2dTranspose(y, w, [2, 7, 6, 3], 2, 'same'),
    [[floats([2, 4, 3, 4], -1, 1, 33), floats([3, 3, 3, 4], -1, 1, 34)]],
  ),
  ...over(
    (y, w) => tf.conv2dTranspose(y, w, [1, 5, 5, 2], 1, 'valid'),
    [[floats([1, 3, 3, 3], -1, 1, 33), floats([3, 3, 2, 3], -1, 1, 34)]],
  ),
];

const inOneDimension: Case[] = [
  ...over((x, w) => tf.conv1d(x, w, 2, 'same'), [[floats([2, 7, 3]), floats([3, 3, 4], -1, 1, 35)]]),
  ...over(
    (x, w) => tf.conv1d(x, w, 1, 'valid', 'NWC', 2),
    [[floats([2, 9, 2]), floats([3, 2, 3], -1, 1, 35)]],
  ),
];

/** [batch, channels, height, width]. */
const channelsFirst: Case[] = [
  ...over(
    (x, w) => tf.conv2d(x, w, [2, 1], 'same', 'NCHW'),
    [[floats([2, 3, 5, 4]), floats([3, 2, 3, 2], -1, 1, 35)]],
  ),
  ...over(
    (x, w) => {
      const pads = explicit(1, 0, 2, 1);
      return tf.conv2d(x, w, 1, [pads[0], pads[3], pads[1], pads[2]] as any, 'NCHW');
    },
    [[floats([1, 2, 4, 3]), floats([2, 2, 2, 3], -1, 1, 35)]],
  ),
];

const rounded: Case[] = (['ceil', 'round', 'floor'] as const).flatMap((mode) =>
  over(
    (x, w) => tf.conv2d(x, w, 2, 1, 'NHWC', 1, mode),
    [[floats([1, 6, 7, 2]), floats([3, 3, 2, 2], -1, 1, 35)]],
    // tfjs's gradients are those without rounding.
    mode === 'floor' ? {} : constant,
  ),
);

/** As deep, and with as many cells, as machine code computes by transforms of tiles. */
const DEEP: readonly Form[] = [
  [[2, 9, 13, 17], [3, 3, 17, 16], 1, 'same'],
  [[3, 10, 8, 16], [3, 3, 16, 18], 1, explicit(0, 2, 3, 1)],
];

/** Values and gradients against tfjs alone: finite differences of so many terms are too coarse. */
const deep: Case[] = DEEP.flatMap((form) => {
  const [x, w] = operands(form);
  const both: CaseFunction = (a, b) => {
    const gradients = tf.grads((c: any, d: any) => tf.sum(tf.square(conv(form)(c, d) as any)) as any)([a, b]);
    return [conv(form)(a, b) as any, ...gradients];
  };
  return over(both, [[x!, w!]], { ...constant, tolerance: { relative: 1e-5, absolute: 2e-4 } });
});

type Pool = readonly [
  input: number[],
  window: number | [number, number],
  strides: number | [number, number],
  pad: unknown,
  rounding?: 'floor' | 'ceil' | 'round',
];

const POOLS: readonly Pool[] = [
  [[2, 4, 6, 3], 2, 2, 'valid'],
  [[2, 5, 7, 2], 2, 2, 'same'],
  [[1, 6, 5, 2], 3, 1, 'same'],
  [[1, 7, 6, 2], [3, 2], [2, 3], 'valid'],
  [[1, 7, 6, 1], [2, 3], [1, 2], 'same'],
  [[1, 5, 5, 2], 1, 2, 'valid'],
  [[1, 6, 5, 2], 3, 2, explicit(1, 0, 2, 1)],
  [[2, 3, 4, 1], [3, 4], 1, 'valid'],
  [[2, 6, 7, 2], 3, 2, 1, 'floor'],
];

/**
 * Windows that reach beyond the padding, and the padding that they need. tfjs's cpu backend rounds in no gradient, so
 * the oracle gets that padding.
 */
const ROUNDED: readonly (readonly [pool: Pool, pad: unknown])[] = [
  [[[1, 6, 6, 2], 3, 2, 1, 'ceil'], explicit(1, 2, 1, 2)],
  [[[2, 7, 7, 1], 3, 3, 0, 'ceil'], explicit(0, 2, 0, 2)],
  [[[1, 5, 7, 2], 2, [2, 3], explicit(1, 0, 0, 0), 'round'], explicit(1, 0, 0, 1)],
];

/** Values in random order, so far apart that a step of a finite difference swaps no two of them. */
function distinct(shape: number[]): HostTensor {
  const { data } = floats(shape, -2, 2, 36);
  const sorted = [...data].sort((a, b) => a - b);
  return host(
    shape,
    Array.from(data, (x) => sorted.indexOf(x) / 16 - 2),
  );
}

const pools = (f: (x: any, pool: Pool) => any): Case[] => [
  ...POOLS.flatMap((pool) => over((x) => f(x, pool), [[distinct(pool[0])]])),
  ...ROUNDED.flatMap(([pool, pad]) => {
    const [input, window, strides] = pool;
    return over((x) => f(x, pool), [[distinct(input)]], {
      oracle: (x) => f(x, [input, window, strides, pad]),
    });
  }),
];

const max = (x: any, [, window, strides, pad, rounding]: Pool) =>
  tf.maxPool(x, window, strides, pad as 'same', rounding);
const average = (x: any, [, window, strides, pad, rounding]: Pool) =>
  tf.avgPool(x, window, strides, pad as 'same', rounding);

/** Few values: most windows have their maximum several times. */
const ties = host([2, 6, 5, 2], ints([120], 0, 3, 37).data);

const averages = pools(average);
const convolutions = [...each(CONVOLUTIONS, conv), ...inOneDimension, ...channelsFirst, ...rounded];
const depthwises = each(DEPTHWISE, depthwise);
const turned = over(
  (x, w) => depthwise([[], [], 1, 'same'])(tf.transpose(x, [0, 2, 3, 1]), tf.transpose(w, [2, 1, 0, 3])),
  [[floats([2, 9, 4, 5], -1, 1, 31), floats([9, 3, 2, 1], -1, 1, 32)]],
);
const broad = [...each(BROAD, depthwise), ...turned];
/** Gradients are in the cases of what they are gradients of; these hold one of each. */
const someOf = (cases: readonly Case[]): Case[] => [0, 2, 5].map((i) => cases[i]!);

/** The gradient of ties against tfjs alone: they have no slope. */
const tied = over(
  (x) => {
    const pool = (form: Pool) => tf.grad((y: any) => tf.sum(tf.square(max(y, form))) as any)(x);
    return POOLS.filter(([, window]) => window !== 1).map((form) => pool([[], ...form.slice(1)] as any));
  },
  [[ties]],
  constant,
);

const sliding =
  (begin: number, count: number, stride: number, taps: number, step: number): CaseFunction =>
  (x) =>
    callComposite('SlidingWindows', [x], { begin, count, stride, taps, step });

export const convolutionCases: CaseTable = {
  Conv2D: [...convolutions, ...deep],
  Conv2DBackpropInput: [...someOf(convolutions), ...transposed],
  Conv2DBackpropFilter: someOf(convolutions),
  DepthwiseConv2dNative: [...depthwises, ...broad],
  DepthwiseConv2dNativeBackpropInput: someOf(depthwises),
  DepthwiseConv2dNativeBackpropFilter: someOf(depthwises),
  MaxPool: [...pools(max), ...over((x) => max(x, POOLS[1]!), [[ints([2, 5, 7, 2], -9, 9)]], constant)],
  MaxPoolGrad: [...someOf(pools(max)), ...tied],
  AvgPool: averages,
  AvgPoolGrad: someOf(averages),
  SlidingWindows: [
    ...over(sliding(1, 3, 1, 2, 1), [[floats([2, 3, 5, 2])]], constant),
    ...over(sliding(0, 2, 2, 3, 1), [[floats([7, 3])]], constant),
    ...over((x) => sliding(0, 2, 3, 2, 1)(tf.transpose(x, [0, 2, 1])), [[floats([2, 3, 7])]], constant),
    ...over(sliding(1, 3, 1, 2, 2), [[floats([2, 7, 1])], [floats([2, 7, 3])]], constant),
  ],
};
