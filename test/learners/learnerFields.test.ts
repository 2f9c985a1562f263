/** @file Fields of learners beyond clipping: outliers of norms, elastic weight consolidation, scaled steps, kept slots. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { GaussianSqrtFanIn, Constant as Same, Xavier } from '../../src/layers/index.js';
import { Adam, Learner, OutlierBound, Sgd, StaticAccumulator } from '../../src/learners/index.js';
import { bench, learnerOf, noise } from './fixtures.js';

const sgd = (values: Partial<Parameters<typeof Sgd.config>[0]> = {}) =>
  Sgd.config({ learningRate: 1, ...values });

test('a bound from half of the window on; an outlier counts as the bound, and a new level moves it', () => {
  const bound = new OutlierBound(3, 8);
  for (const value of [1, Number.NaN, 2, 1]) bound.add(value);
  expect(bound.bound).toBe(Number.POSITIVE_INFINITY);
  bound.add(2);
  // Mean 1.5, standard deviation of four values √(1 / 3).
  const expected = 1.5 + 3 * Math.sqrt(1 / 3);
  expect(bound.bound).toBeCloseTo(expected, 12);
  const again = new OutlierBound(3, 8);
  again.restore(JSON.parse(JSON.stringify(bound.state)));
  again.add(1e9);
  expect(again.state).toEqual([1, 2, 1, 2, expect.closeTo(expected, 12)]);
  for (let i = 0; i < 40; i++) again.add(50);
  expect(again.bound).toBeGreaterThan(49.9);
  // Values without any noise are no outliers of their own.
  const constant = new OutlierBound(6, 2);
  for (let i = 0; i < 4; i++) constant.add(0.1);
  expect(constant.bound).toBeCloseTo(0.1001, 10);
});

test('a norm above the last ones by their deviations leaves the step out, as does the fixed bound', async () => {
  const config = Learner.config({
    ...{
      optimizer: sgd(),
      skipStepGradientNormSigma: 2,
      skipStepGradientNormWindow: 4,
      skipStepGradientNormValue: 3,
    },
  });
  const { step, read, learner, updater } = await bench({ a: [0] }, config);
  expect(learner.needsReports).toBe(true);
  const told = [];
  for (const [i, grad] of [1, 2, 2.5, 5].entries()) {
    const { isValidStep, gradNormBound } = await step(i, { a: [grad] });
    told.push([isValidStep, gradNormBound]);
  }
  // Of 1 and 2: mean 1.5, deviation √0.5. Of 1, 2 and 2.5 the bound is above the fixed one, and counts in place of the 5.
  const second = 1.5 + 2 * Math.SQRT1_2;
  expect(told).toEqual([
    [1, 3],
    [1, 3],
    [1, Math.fround(second)],
    [0, 3],
  ]);
  expect(read('a')).toEqual([-5.5]);
  const third = 5.5 / 3 + 2 * Math.sqrt((1 + 4 + 6.25 - 5.5 ** 2 / 3) / 2);
  expect(updater.norms!.state).toEqual([1, 2, 2.5, expect.closeTo(third, 12)]);
  expect(() =>
    build(Learner.config({ optimizer: sgd(), skipStepGradientNormSigma: 2, checkValidStep: false })),
  ).toThrow(
    'Learner: skipStepGradientNormSigma needs checkValidStep, which looks for the steps that it means.',
  );
});

test("elastic weight consolidation: Pax's figures, factors by patterns, behind an accumulator too", async () => {
  const ewc = { ewcRegularizerWeight: 1 };
  const pax = await bench({ var: [0] }, learnerOf(sgd({ ...ewc, ewcWeightPerVar: { var: 1 } })));
  for (const [i, grad] of [1, 2, 3].entries()) await pax.step(i, { var: [grad] });
  expect(pax.read('var')).toEqual([-4.25]);
  expect(pax.read('var', 'pretrained')).toEqual([0]);

  const factors = { ...ewc, ewcWeightPerVar: { 'b.*': 4, '.*c': 0 } };
  const { step, read } = await bench({ a: [1], bc: [2, 3], c: [4] }, learnerOf(sgd(factors)));
  for (const i of [0, 1]) await step(i, { a: [1], bc: [1, 1], c: [1] });
  expect([read('a'), read('bc'), read('c')]).toEqual([[1 - 2 + 0.5], [2 - 2 + 2, 3 - 2 + 2], [2]]);
  expect(read('bc', 'pretrained')).toEqual([2, 3]);

  const accumulator = StaticAccumulator.config({ optimizer: sgd(ewc), numSubBatches: 1 });
  const inside = await bench({ var: [5] }, learnerOf(accumulator));
  for (const [i, grad] of [1, 2, 3].entries()) await inside.step(i, { var: [grad] });
  expect(inside.read('var')).toEqual([0.75]);
  expect(() => build(learnerOf(sgd(factors))).layout([{ path: 'a', shape: [1] }])).toThrow(
    "Learner: the pattern 'b.*' matches no variable of the model.",
  );
  expect(() => build(sgd({ ewcWeightPerVar: { '(': 1 } }))).toThrow(
    "Sgd: ewcWeightPerVar: '(' is not a regular expression.",
  );
});

test('steps scaled by the scale of initial values: of matrices alone, weight decay too', async () => {
  const config = Learner.config({
    optimizer: sgd({ decoupledWeightDecay: 0.5 }),
    scaleUpdateByVarNorm: true,
  });
  const values = { w: [1, 2, 3, 4, 5, 6, 7, 8], x: [1, 2, 3, 4], b: [2] };
  const inits = {
    w: build(GaussianSqrtFanIn.config({ scale: 3 })),
    x: build(Xavier.config()),
    b: build(Same.config()),
  };
  const { step, read, layout } = await bench(values, config, { shapes: { w: [4, 2], x: [2, 2] }, inits });
  expect(layout.entries.map(({ name, updateScale }) => [name, updateScale])).toEqual([
    ['w', 1.5],
    ['x', Math.sqrt(6 / 4)],
    ['b', undefined],
  ]);
  await step(0, { w: Array(8).fill(2), x: [0, 0, 0, 0], b: [2] });
  expect(read('w')).toEqual(values.w.map((w) => w + 1.5 * (-2 - 0.5 * w)));
  for (const [i, x] of read('x').entries()) expect(x).toBeCloseTo((i + 1) * (1 - 0.5 * Math.sqrt(1.5)), 6);
  expect(read('b')).toEqual([2 - 2 - 1]);
  expect(() => build(config).layout([{ path: 'lm/w', shape: [2, 2], init: build(Same.config()) }])).toThrow(
    "Learner: scaleUpdateByVarNorm: the initial values of 'lm/w' have no scale; give it a Gaussian, truncated or uniform init.",
  );
});

test('excluded variables keep their slots where asked, and neither move', async () => {
  const config = Learner.config({
    optimizer: Adam.config({ learningRate: 1, emaDecay: 0.5 }),
    ...{ bpropVariableInclusion: ['a'], keepOptimizerStateForExcludedVars: true },
  });
  const { step, read, slots, updater } = await bench({ b: noise(1, 20), a: [3] }, config);
  slots.v!.fill(7);
  expect(read('b', 'v')).toEqual(Array(20).fill(7));
  await step(0, { a: [2] });
  expect(read('b', 'v')).toEqual(Array(20).fill(7));
  expect(read('b')).toEqual(noise(1, 20));
  expect(read('a', 'v')).not.toEqual([7]);
  expect(slots.ema!.length).toBe(16);
  expect(updater.varNorms()).toEqual({ a: Math.abs(read('a')[0]!) });
});
