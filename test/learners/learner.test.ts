/** @file Learner: clipping, steps that are not taken, frozen variables, norms. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { AdamW, Learner, Linear, Sgd } from '../../src/learners/index.js';
import { bench, learnerOf, noise } from './fixtures.js';

const sgd = (values: Parameters<typeof Sgd.config>[0] = {}) => Sgd.config({ learningRate: 1, ...values });
const zeros = { a: [0, 0], b: [0] };
const grads = { a: [0.5, 0.5], b: [1.5] };
const norm = Math.sqrt(0.25 + 0.25 + 2.25);

test('global-norm clipping scales all gradients by one factor', async () => {
  const { step, read } = await bench(zeros, learnerOf(sgd({ clipGradientNormToValue: 1 })));
  const report = await step(0, grads);
  expect(report).toEqual({
    learningRate: 1,
    rawGradNorm: Math.fround(norm),
    clippedGradNorm: expect.closeTo(1, 6),
    gradScale: expect.closeTo(1 / norm, 6),
    isValidStep: 1,
  });
  for (const value of read('a')) expect(value).toBeCloseTo(-0.5 / norm, 6);
  expect(read('b')[0]).toBeCloseTo(-1.5 / norm, 6);
});

test('a norm below the bound is left as it is', async () => {
  const { step, read } = await bench(zeros, learnerOf(sgd({ clipGradientNormToValue: 2 })));
  expect((await step(0, grads)).gradScale).toBe(1);
  expect(read('b')).toEqual([-1.5]);
});

test('single-norm clipping limits each variable', async () => {
  const { step, read, updater } = await bench(zeros, learnerOf(sgd({ clipGradientSingleNormToValue: 1 })));
  const report = await step(0, grads);
  expect(report).toMatchObject({ rawGradNorm: Math.fround(norm), gradScale: 1, isValidStep: 1 });
  expect(report.clippedGradNorm).toBeCloseTo(Math.sqrt(0.5 + 1), 6);
  expect(read('a')).toEqual([-0.5, -0.5]);
  expect(read('b')).toEqual([-1]);
  expect(updater.gradNorms()).toEqual({ a: Math.SQRT1_2, b: 1.5 });
});

test.each([{ clipGradientNormToValue: 1 }, { clipGradientSingleNormToValue: 1 }])(
  'gradients of zero stay zero: %o',
  async (clipping) => {
    const { step, read } = await bench({ a: [2], b: [3] }, learnerOf(sgd(clipping)));
    expect(await step(0, { a: [0], b: [0] })).toMatchObject({
      gradScale: 1,
      clippedGradNorm: 0,
      isValidStep: 1,
    });
    expect([read('a'), read('b')]).toEqual([[2], [3]]);
  },
);

const bits = (buffer: Float32Array) => [...new Uint32Array(buffer.buffer.slice(0))];

test.each([
  ['NaN', Number.NaN],
  ['infinity', Number.POSITIVE_INFINITY],
  ['a norm that is too large', 1e3],
])('%s: parameters and slots keep every bit, and training goes on', async (_name, bad) => {
  const optimizer = AdamW.config({ learningRate: 0.1, clipGradientNormToValue: 1 });
  const { step, params, slots, read } = await bench(
    { a: noise(1, 20), b: noise(2, 3) },
    Learner.config({ optimizer, skipStepGradientNormValue: 100 }),
  );
  await step(0, { a: noise(3, 20), b: noise(4, 3) });
  const before = [params, slots.m!, slots.v!].map(bits);
  const report = await step(1, { a: noise(5, 20), b: [0, bad, 0] });
  expect(report.isValidStep).toBe(0);
  expect([params, slots.m!, slots.v!].map(bits)).toEqual(before);
  const kept = read('a');
  expect((await step(2, { b: [0, 0, 0] })).isValidStep).toBe(1);
  expect(read('a')).not.toEqual(kept);
  expect(params.every(Number.isFinite)).toBe(true);
});

test('skipping can be switched off: the step is reported and taken', async () => {
  const { step, read } = await bench(
    { a: [1], b: [2] },
    Learner.config({
      optimizer: sgd(),
      skipStepGradientNormValue: 1,
      enableSkipStepOnGradientAnomalies: false,
    }),
  );
  expect((await step(0, { a: [5], b: [0] })).isValidStep).toBe(0);
  expect(read('a')).toEqual([-4]);
});

test('checks can be switched off', async () => {
  const config = Learner.config({ optimizer: sgd(), skipStepGradientNormValue: 1, checkValidStep: false });
  const { step, read } = await bench({ a: [1], b: [2] }, config);
  expect((await step(0, { a: [5], b: [0] })).isValidStep).toBe(1);
  expect(read('a')).toEqual([-4]);
});

test('the learning rate is learningRate times the schedule at the number of finished steps', async () => {
  const lrSchedule = Linear.config({ start: [0, 0], limit: [10, 1] });
  const { step, read } = await bench({ a: [1] }, learnerOf(Sgd.config({ learningRate: 0.5, lrSchedule })));
  expect((await step(0, { a: [1] })).learningRate).toBe(0);
  expect(read('a')).toEqual([1]);
  expect((await step(5, { a: [1] })).learningRate).toBe(0.25);
  expect(read('a')).toEqual([0.75]);
});

test.each([
  ['bpropVariableExclusion', { bpropVariableExclusion: ['.*emb.*'] }],
  ['bpropVariableInclusion', { bpropVariableInclusion: ['lm/(w|b)'] }],
])('%s: those variables stay, and have neither gradients nor slots', async (_name, fields) => {
  const { step, read, layout, slots, updater } = await bench(
    { 'lm/w': [1], 'lm/emb/w': [2], 'lm/b': [3] },
    Learner.config({ optimizer: sgd({ momentum: 0.5, emaDecay: 0.5 }), ...fields }),
  );
  expect(layout.entries.map(({ name, group }) => [name, group])).toEqual([
    ['lm/w', 'decay'],
    ['lm/b', 'decay'],
    ['lm/emb/w', 'frozen'],
  ]);
  const report = await step(0, { 'lm/w': [3], 'lm/b': [4] });
  expect(report).toMatchObject({ rawGradNorm: 5, isValidStep: 1 });
  expect(['lm/w', 'lm/emb/w', 'lm/b'].map((name) => read(name)[0])).toEqual([-2, 2, -1]);
  expect(updater.varNorm()).toBeCloseTo(Math.sqrt(5), 12);
  expect(updater.gradNorms()).toEqual({ 'lm/w': 3, 'lm/b': 4 });
  // Each variable takes a cache line of 16 elements.
  expect(Object.entries(slots).map(([name, { length }]) => [name, length])).toEqual([
    ['m', 32],
    ['ema', 32],
  ]);
});

test('NON_TRAINABLE: a step that is taken puts there what stands in the place of gradients, averages included', async () => {
  const { step, read, layout, updater } = await bench(
    { 'lm/w': [1], 'lm/mean': [2, 2] },
    Learner.config({ optimizer: Sgd.config({ learningRate: 1, momentum: 0.5, emaDecay: 0.5 }) }),
    { collections: { 'lm/mean': ['NON_TRAINABLE'] } },
  );
  expect(layout.entries.map(({ name, group }) => [name, group])).toEqual([
    ['lm/w', 'decay'],
    ['lm/mean', 'nonTrainable'],
  ]);
  expect(await step(0, { 'lm/w': [3], 'lm/mean': [70, 80] })).toMatchObject({
    rawGradNorm: 3,
    isValidStep: 1,
  });
  expect([read('lm/w'), read('lm/mean'), read('lm/mean', 'ema')]).toEqual([[-2], [70, 80], [70, 80]]);
  expect(await step(1, { 'lm/w': [Number.NaN], 'lm/mean': [90, Number.NaN] })).toMatchObject({
    isValidStep: 0,
  });
  expect([read('lm/w'), read('lm/mean'), read('lm/mean', 'ema')]).toEqual([[-2], [70, 80], [70, 80]]);
  expect(read('lm/mean', 'm')).toEqual([0, 0]);
  expect(updater.varNorm()).toBe(2);
});

test('bad input is named', () => {
  const optimizer = sgd();
  expect(() =>
    build(Learner.config({ optimizer, bpropVariableExclusion: ['a'], bpropVariableInclusion: ['b'] })),
  ).toThrow('Learner: bpropVariableExclusion and bpropVariableInclusion are exclusive; set one of them.');
  expect(() => build(Learner.config({ optimizer, bpropVariableExclusion: ['('] }))).toThrow(
    "Learner: '(' is not a regular expression: ",
  );
  const learner = build(learnerOf(Sgd.config({ learningRate: 1, momentum: 0.9 })));
  const layout = learner.layout([{ path: 'a', shape: [3] }]);
  const params = new Float32Array(16);
  expect(() => learner.createUpdater(layout, { params, grads: params.subarray(1), slots: {} })).toThrow(
    "createUpdater: variables that are not frozen have 16 elements, buffer 'grads' has 15 elements.",
  );
  expect(() => learner.createUpdater(layout, { params, grads: params, slots: {} })).toThrow(
    "createUpdater: variables that are not frozen have 16 elements, buffer 'slots.m' is missing.",
  );
});
