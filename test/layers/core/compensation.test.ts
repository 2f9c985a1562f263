/** @file Rounding errors that the weights behind make up for: the formula of two weights, and products of random factors. */
import { expect, test } from 'vitest';
import { type CodeForm, codesOf, compensationOf } from '../../../src/layers/index.js';

const [C, D, M] = [6, 64, 200];
const form: CodeForm = {
  ...{ bits: 4, shape: [C, D], axes: [0, 1], channels: C, depth: D, groups: 2, hasBlocks: true },
  ...{ codesShape: [C, D / 2], scaleShape: [C, 2] },
};

/** Repeatable numbers from -1 to 1. */
function noise(size: number, seed: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}

/** Factors [M, D] that have half of their variance in common; the last eight are always 0. */
const common = noise(M, 7);
const factors = noise(M * D, 3).map((x, i) => (i % D >= D - 8 ? 0 : x + common[Math.floor(i / D)]!));
const weights = noise(C * D, 5);

/** Blocks on the diagonal of x^T x. */
const sumsOf = (block: number) => ({
  block,
  sums: Array.from({ length: D / block }, (_, which) =>
    Float64Array.from({ length: block * block }, (_, at) => {
      const [i, j] = [Math.floor(at / block) + which * block, (at % block) + which * block];
      let sum = 0;
      for (let m = 0; m < M; m++) sum += factors[m * D + i]! * factors[m * D + j]!;
      return sum;
    }),
  ),
});

/** The squared error of all products by a weight's codes. */
function errorOf({ codes, scales }: ReturnType<typeof codesOf>): number {
  let error = 0;
  const floats = new Float32Array(Uint32Array.from(scales, (half) => half << 16).buffer);
  const weightAt = (c: number, i: number): number => {
    const byte = codes[(c * D + i - (i % 32)) / 2 + (i % 16)]!;
    return ((i % 32 < 16 ? byte & 15 : byte >> 4) - 8) * floats[c * 2 + Math.floor(i / 32)]!;
  };
  for (let m = 0; m < M; m++)
    for (let c = 0; c < C; c++) {
      let sum = 0;
      for (let i = 0; i < D; i++) sum += factors[m * D + i]! * (weights[c * D + i]! - weightAt(c, i));
      error += sum ** 2;
    }
  return error;
}

test('of two weights, the second takes what the first one leaves of the product', () => {
  // The least of (a, b) H (a, b) over b is at -a H12 / H22; 1 % of the mean of the diagonal, 3, is added.
  const { blocks } = compensationOf({ block: 2, sums: [Float64Array.of(2, 1, 1, 4)] });
  expect(blocks[0]![0]).toBe(1);
  expect(blocks[0]![1]).toBeCloseTo(-1 / 4.03, 6);
  expect(blocks[0]![2]).toBe(0);
});

test('products by codes are nearer, less so where blocks are apart, and the same where factors are independent', () => {
  const plain = codesOf(weights, form, true);
  const errors = [64, 32].map((block) =>
    errorOf(codesOf(weights, form, true, compensationOf(sumsOf(block)))),
  );
  expect(errors[0]).toBeLessThan(0.5 * errorOf(plain));
  expect(errors[1]).toBeLessThan(0.7 * errorOf(plain));
  expect(errors[0]).toBeLessThan(errors[1]!);
  const apart = sumsOf(D);
  apart.sums[0] = apart.sums[0]!.map((x, at) => (at % (D + 1) === 0 ? x : 0));
  expect(codesOf(weights, form, true, compensationOf(apart))).toEqual(plain);
});

test('factors that are always 0 leave weights as they are', () => {
  const none = { block: D, sums: [new Float64Array(D * D)] };
  expect(codesOf(weights, form, true, compensationOf(none))).toEqual(codesOf(weights, form, true));
});
