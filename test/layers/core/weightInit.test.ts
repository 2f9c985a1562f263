/** @file Initial values: formulas, statistics, independence of order. */
import { expect, test } from 'vitest';
import { fillNow, prngKey, sizeOf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { inverseErf } from '../../../src/layers/core/inverseErf.js';
import { fans } from '../../../src/layers/core/weightInit.js';
import {
  Constant,
  Gaussian,
  GaussianSqrtDim,
  GaussianSqrtFanAvg,
  GaussianSqrtFanIn,
  GaussianSqrtFanOut,
  TruncatedGaussian,
  TruncatedGaussianSqrtDim,
  TruncatedGaussianSqrtFanIn,
  TruncatedGaussianSqrtFanOut,
  Uniform,
  UniformSqrtDim,
  UniformSqrtFanAvg,
  UniformUnitScaling,
  type WeightInit,
  Xavier,
  XavierWithFixupParams,
} from '../../../src/layers/index.js';

const KEY = prngKey(42);

/** The values that an initialiser gives a weight of this shape. */
function drawn(init: WeightInit, shape: readonly number[]): Float32Array {
  const given = init.draw(KEY, { shape });
  if (given instanceof Float32Array) return given;
  const out = new Float32Array(sizeOf(shape));
  fillNow({ ...given, key: KEY, out });
  return out;
}

function moments(values: Float32Array): { mean: number; sd: number; max: number; kurtosis: number } {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const central = (power: number): number =>
    values.reduce((a, b) => a + (b - mean) ** power, 0) / values.length;
  const max = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return { mean, sd: Math.sqrt(central(2)), max, kurtosis: central(4) / central(2) ** 2 };
}

/** The standard deviation of a normal number cut off at two: sqrt(1 - 4 phi(2) / P(|z| < 2)). */
const TRUNCATED_SD = 0.879596;

const SHAPE = [40, 50, 30];
// Pax: fan-in 50 * 40, fan-out 30 * 40 for a shape that no axes are named for.
const cases: [string, WeightInit, number, 'normal' | 'uniform' | 'truncated'][] = [
  ['Gaussian', build(Gaussian.config({ scale: 0.02 })), 0.02, 'normal'],
  ['GaussianSqrtDim', build(GaussianSqrtDim.config({ scale: 2 })), 2 / Math.sqrt(40), 'normal'],
  ['GaussianSqrtFanIn', build(GaussianSqrtFanIn.config()), 1 / Math.sqrt(2000), 'normal'],
  ['GaussianSqrtFanOut', build(GaussianSqrtFanOut.config()), 1 / Math.sqrt(1200), 'normal'],
  ['GaussianSqrtFanAvg', build(GaussianSqrtFanAvg.config()), Math.sqrt(2 / 3200), 'normal'],
  ['Uniform', build(Uniform.config({ scale: 3 })), 3, 'uniform'],
  ['UniformSqrtDim', build(UniformSqrtDim.config()), 1 / Math.sqrt(40), 'uniform'],
  ['UniformSqrtFanAvg', build(UniformSqrtFanAvg.config()), Math.sqrt(6 / 3200), 'uniform'],
  ['UniformUnitScaling', build(UniformUnitScaling.config()), Math.sqrt(3 / 2000), 'uniform'],
  ['Xavier', build(Xavier.config({ scale: 2 })), 2 * Math.sqrt(6 / 3200), 'uniform'],
  [
    'XavierWithFixupParams',
    build(XavierWithFixupParams.config({ depth: 16, layersPerResidualBlock: 2 })),
    Math.sqrt(6 / 3200) / 2,
    'uniform',
  ],
  ['TruncatedGaussian', build(TruncatedGaussian.config({ scale: 0.5 })), 0.5, 'truncated'],
  ['TruncatedGaussianSqrtDim', build(TruncatedGaussianSqrtDim.config()), 1 / Math.sqrt(40), 'truncated'],
  [
    'TruncatedGaussianSqrtFanIn',
    build(TruncatedGaussianSqrtFanIn.config()),
    1 / Math.sqrt(2000),
    'truncated',
  ],
  [
    'TruncatedGaussianSqrtFanOut',
    build(TruncatedGaussianSqrtFanOut.config()),
    1 / Math.sqrt(1200),
    'truncated',
  ],
];

test.each(cases)('%s has the moments of its formula', (_, init, scale, kind) => {
  const values = drawn(init, SHAPE);
  expect(values.length).toBe(60_000);
  const { mean, sd, max, kurtosis } = moments(values);
  expect(Math.abs(mean) / scale).toBeLessThan(0.015);
  if (kind === 'normal') {
    expect(sd / scale).toBeCloseTo(1, 1.7);
    expect(kurtosis).toBeGreaterThan(2.9);
    expect(kurtosis).toBeLessThan(3.1);
    expect(max / scale).toBeGreaterThan(3.5);
  } else if (kind === 'uniform') {
    expect((sd / scale) * Math.sqrt(3)).toBeCloseTo(1, 1.7);
    expect(max / scale).toBeLessThanOrEqual(1.000001);
    expect(max / scale).toBeGreaterThan(0.999);
  } else {
    expect(sd / scale).toBeCloseTo(TRUNCATED_SD, 2);
    expect(max / scale).toBeLessThanOrEqual(2.000001);
    expect(max / scale).toBeGreaterThan(1.99);
  }
});

test('Constant fills with its scale', () => {
  expect([...drawn(build(Constant.config({ scale: 2.5 })), [3])]).toEqual([2.5, 2.5, 2.5]);
});

test('a longer tensor begins like a shorter one, and an odd number of values is fine', () => {
  const init = build(Gaussian.config());
  expect([...drawn(init, [7])]).toEqual([...drawn(init, [20])].slice(0, 7));
});

test('a scalar has no fans and keeps its scale', () => {
  expect(fans({ shape: [] })).toBeNull();
  for (const cls of [GaussianSqrtFanIn, GaussianSqrtFanAvg, GaussianSqrtDim, Xavier]) {
    const value = drawn(build(cls.config()), [])[0]!;
    const plain = drawn(build((cls === Xavier ? Uniform : Gaussian).config()), [])[0]!;
    expect(value).toBe(plain);
  }
});

test('fans follow Pax: vectors count twice, leading axes multiply both, named axes win', () => {
  expect(fans({ shape: [5] })).toEqual({ fanIn: 5, fanOut: 5 });
  expect(fans({ shape: [5, 7] })).toEqual({ fanIn: 5, fanOut: 7 });
  expect(fans({ shape: [3, 3, 5, 7] })).toEqual({ fanIn: 45, fanOut: 63 });
  expect(fans({ shape: [16, 4, 8], fanInAxes: [0], fanOutAxes: [-2, -1] })).toEqual({
    fanIn: 16,
    fanOut: 32,
  });
});

test('inverseErf inverts the error function', () => {
  // From tables: erf(0.5), erf(1), erf(1.4).
  expect(inverseErf(0.5204998778130465)).toBeCloseTo(0.5, 12);
  expect(inverseErf(-0.8427007929497149)).toBeCloseTo(-1, 12);
  expect(inverseErf(0.9522851197626488)).toBeCloseTo(1.4, 12);
  expect(inverseErf(0)).toBe(0);
});
