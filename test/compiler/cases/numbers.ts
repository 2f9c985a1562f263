/** @file Cases of inverse and hyperbolic functions, and of decomposed kernels of numbers. */
import { tf } from '../../../src/compiler/index.js';
import { floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const unary = (f: CaseFunction, low: number, high: number, rest: Partial<Case> = {}): Case[] =>
  over(f, [[floats([], low, high)], [floats([2, 7], low, high)]], rest);

/** Wherever the function has a slope that differences can see, and where it hardly has one. */
const everywhere = (f: CaseFunction, low: number, high: number, wide: [number, number]): Case[] => [
  ...unary(f, low, high),
  ...unary(f, ...wide, constant),
];

const SPECIAL = [NaN, Infinity, -Infinity, 0, -0, 1e-38, -1e-30, 3e38, -2e38, 1, -1, 0.5, -2.5];
/** Each with each. */
const specialPairs = [
  host(
    [SPECIAL.length ** 2],
    SPECIAL.flatMap((x) => SPECIAL.map(() => x)),
  ),
  host(
    [SPECIAL.length ** 2],
    SPECIAL.flatMap(() => SPECIAL),
  ),
];

const cumprods = (shape: number[], axis: number): Case[] =>
  [false, true].flatMap((exclusive) =>
    [false, true].flatMap((reverse) =>
      over((x) => tf.cumprod(x, axis, exclusive, reverse), [[floats(shape, -1.5, 1.5)]]),
    ),
  );

export const numberCases: CaseTable = {
  Tan: everywhere(tf.tan, -1.2, 1.2, [-99, 99]),
  Asin: everywhere(tf.asin, -0.9, 0.9, [-1.1, 1.1]),
  Acos: everywhere(tf.acos, -0.9, 0.9, [-1.1, 1.1]),
  Atan: everywhere(tf.atan, -4, 4, [-1e4, 1e4]),
  Sinh: everywhere(tf.sinh, -2, 2, [-89, 89]),
  Cosh: everywhere(tf.cosh, -2, 2, [-89, 89]),
  Asinh: everywhere(tf.asinh, -4, 4, [-1e5, 1e5]),
  Acosh: everywhere(tf.acosh, 1.5, 9, [0, 1e5]),
  Atanh: everywhere(tf.atanh, -0.8, 0.8, [-1.2, 1.2]),
  BitwiseAnd: over(
    tf.bitwiseAnd,
    [
      [ints([3, 4], -9, 9), ints([3, 4], -9e6, 9e6, 3)],
      [ints([], 0, 9), ints([], -9, 0)],
    ],
    constant,
  ),
  Selu: [...unary(tf.selu, -4, 4), ...over(tf.selu, [[host([5], [-1e-9, 1e-9, -90, 90, -0])]], constant)],
  Prelu: [
    ...over(tf.prelu, [
      [floats([2, 3, 4]), floats([2, 3, 4], 0, 1, 5)],
      [floats([2, 3, 4]), floats([4], -1, 1, 5)],
      [floats([2, 3, 4]), floats([3, 1], -1, 1, 5)],
    ]),
    ...over(tf.prelu, [specialPairs], constant),
  ],
  Atan2: [
    ...over(tf.atan2, [
      [floats([9], 0.5, 2), floats([9], -2, 2, 5)],
      [floats([2, 3], -2, 2), floats([3], 0.3, 2, 5)],
    ]),
    ...over(tf.atan2, [specialPairs, [ints([2, 3], -4, 4), ints([3], -3, 3)]], constant),
  ],
  Cumprod: [
    ...cumprods([5], 0),
    ...cumprods([3, 4, 2], 1),
    ...cumprods([3, 1], 1),
    // Where an element is 0, the others have gradients all the same.
    ...over((x) => tf.cumprod(x, 0), [[host([4], [2, 0, 3, 0.5])]]),
    ...over((x) => tf.cumprod(x, 1), [[ints([2, 9], -9, 9)], [floats([2, 0])]], constant),
  ],
};
