/** @file Learner: clipping, steps that are not taken, frozen variables, norms. */
import { expect, test } from 'vitest';
import type { FlatArray } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { Adam, AdamW, changingPart, Learner, Linear, Sgd } from '../../src/learners/index.js';
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

test('a norm at the bound of valid steps is not below it; just above it is clipped alone', async () => {
  const config = (bound: number) =>
    Learner.config({
      optimizer: sgd({ clipGradientNormToValue: 5 }),
      skipStepGradientNormValue: bound,
    });
  const values = { a: [3, 0], b: [4] };
  for (const [bound, isValidStep, b] of [
    [5, 0, 0],
    [5.001, 1, -4],
  ] as const) {
    const { step, read } = await bench(zeros, config(bound));
    expect(await step(0, values)).toMatchObject({ clippedGradNorm: 5, gradScale: 1, isValidStep });
    expect(read('b')).toEqual([b]);
  }
});

test.each([
  // Together, one infinity makes the factor 0; a norm that is no number leaves the others as they are.
  ['clipGradientNormToValue', Number.NaN, [-6, -8]],
  ['clipGradientNormToValue', Number.POSITIVE_INFINITY, [-0, -0]],
  ['clipGradientSingleNormToValue', Number.NaN, [-0.5999999642372131, -0.800000011920929]],
  ['clipGradientSingleNormToValue', Number.POSITIVE_INFINITY, [-0.5999999642372131, -0.800000011920929]],
])('%s beside a gradient of %d that is not looked for', async (clipping, bad, expected) => {
  const config = Learner.config({ optimizer: sgd({ [clipping]: 1 }), checkValidStep: false });
  const { step, read } = await bench(zeros, config);
  const report = await step(0, { a: [6, 8], b: [bad] });
  expect(report).toMatchObject({
    rawGradNorm: bad,
    clippedGradNorm: Number.NaN,
    gradScale: 1,
    isValidStep: 1,
  });
  for (const [i, value] of read('a').entries()) expect(value).toBeCloseTo(expected[i]!, 6);
  expect(read('b')).toEqual([Number.NaN]);
});

test('variables of no elements, and no variables that move', async () => {
  const optimizer = AdamW.config({
    learningRate: 1,
    clipThreshold: 1,
    clipGradientSingleNormToValue: 1,
    emaDecay: 0.5,
  });
  const empty = await bench({ none: [], a: [2] }, learnerOf(optimizer), { shapes: { none: [0, 3] } });
  expect(await empty.step(0, { a: [3] })).toMatchObject({
    rawGradNorm: 3,
    clippedGradNorm: 1,
    isValidStep: 1,
  });
  expect(empty.read('none')).toEqual([]);
  expect(empty.read('a')[0]).toBeCloseTo(2 * (1 - 0.01) - 1, 6);
  expect(empty.updater.gradNorms()).toEqual({ none: 0, a: 3 });
  const frozen = build(Learner.config({ optimizer, bpropVariableExclusion: ['a'] }));
  const layout = frozen.layout([{ path: 'a', shape: [2], collections: [], repeatPrefix: [] }]);
  expect(changingPart(layout)).toEqual({ entries: [], groups: [], size: 0 });
  const fixed = await bench({ a: [2] }, Learner.config({ optimizer, bpropVariableExclusion: ['a'] }));
  expect(await fixed.step(0, {})).toMatchObject({ rawGradNorm: 0, clippedGradNorm: 0, isValidStep: 1 });
  expect([fixed.read('a'), fixed.updater.varNorm(), fixed.updater.gradNorms()]).toEqual([[2], 0, {}]);
});

test('stacked variables are clipped slice by slice, and are vectors where their slices are', async () => {
  const learner = build(
    learnerOf(AdamW.config({ learningRate: 1, skipLp1dVectors: true, clipGradientSingleNormToValue: 1 })),
  );
  const stack = (path: string, shape: number[]) => ({ path, shape, repeatPrefix: [2] });
  const layout = learner.layout([
    stack('matrices', [2, 3, 3]),
    stack('biases', [2, 3]),
    stack('scales', [2]),
    { path: 'matrix', shape: [2, 3] },
    { path: 'vector', shape: [3] },
  ]);
  expect(layout.entries.map(({ name, group, repeatPrefix }) => [name, group, repeatPrefix?.[0]])).toEqual([
    ['matrices', 'decay', 2],
    ['matrix', 'decay', undefined],
    ['biases', 'noDecay', 2],
    ['scales', 'noDecay', 2],
    ['vector', 'noDecay', undefined],
  ]);
  const { step, read } = await bench(
    { stack: [0, 0, 0, 0], one: [0, 0] },
    learnerOf(Adam.config({ learningRate: 1, clipGradientSingleNormToValue: 1, beta1: 0, beta2: 0 })),
    { shapes: { stack: [2, 2] }, repeatPrefix: { stack: [2] } },
  );
  await step(0, { stack: [30, 40, 0.3, 0.4], one: [3, 4] });
  const near = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 6));
  expect(read('stack', 'm')).toEqual(near([0.6, 0.8, 0.3, 0.4]));
  expect(read('one', 'm')).toEqual(near([0.6, 0.8]));
});

test('a call of several runs has the scalars and the report of each', () => {
  const learner = build(
    learnerOf(
      AdamW.config({
        learningRate: 0.5,
        lrSchedule: Linear.config({ start: [0, 0], limit: [4, 1] }),
        decoupledWeightDecay: 0.5,
        emaDecay: 0.25,
      }),
    ),
  );
  const layout = learner.layout([{ path: 'a', shape: [1] }]);
  const buffer = () => new Float32Array(layout.size);
  const slots = { m: buffer(), v: buffer(), ema: buffer() };
  const updater = learner.createUpdater(layout, { params: buffer(), grads: buffer(), slots }, 3);
  for (const run of [0, 1, 2]) updater.prepare(run + 2, run);
  const { learningRate, keep, toEma } = updater.inputs.scalars.decay!;
  expect([learningRate, keep].map((scalars) => [...scalars!])).toEqual([
    [0.25, 0.375, 0.5],
    [0.875, 0.8125, 0.75],
  ]);
  expect([...toEma!]).toEqual([0.75, 0.75, 0.75]);
  updater.prepare(0, 1);
  expect([...toEma!].map((value) => value.toFixed(2))).toEqual(['0.75', '0.90', '0.75']);
  const one = learner.createUpdater(layout, { params: buffer(), grads: buffer(), slots });
  expect(one.inputs.scalars.decay!.toEma!.length).toBe(1);
  const { rawGradNorm, isValid } = updater.outputs as any;
  rawGradNorm.set([1, 2, 3]);
  isValid.set([1, 0, 1]);
  expect([0, 1, 2].map((run) => updater.report(run))).toMatchObject([
    { learningRate: 0.25, rawGradNorm: 1, isValidStep: 1 },
    { learningRate: 0, rawGradNorm: 2, isValidStep: 0 },
    { learningRate: 0.5, rawGradNorm: 3, isValidStep: 1 },
  ]);
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

const bits = (buffer: FlatArray) => [...new Uint32Array(buffer.buffer.slice(0))];

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

test('patterns are of whole paths, and NON_TRAINABLE variables never move', () => {
  const optimizer = sgd();
  const moves = (fields: object, paths = ['a', 'ab', 'b', 'bb']) => {
    const learner = build(Learner.config({ optimizer, ...fields }));
    return paths.filter((path) => learner.isTrainable({ path, shape: [1] }));
  };
  expect(moves({ bpropVariableInclusion: ['a|b'] })).toEqual(['a', 'b']);
  expect(moves({ bpropVariableExclusion: ['x', 'a|b'] })).toEqual(['ab', 'bb']);
  expect(moves({})).toEqual(['a', 'ab', 'b', 'bb']);
  const learner = build(Learner.config({ optimizer, bpropVariableInclusion: ['a'] }));
  expect(learner.isTrainable({ path: 'a', shape: [1], collections: ['NON_TRAINABLE'] })).toBe(false);
});

test('variables in bfloat16 are those that training leaves alone', () => {
  const variable = { path: 'lm/emb/w', shape: [3], storage: 'bfloat16' as const };
  const frozen = build(Learner.config({ optimizer: sgd(), bpropVariableExclusion: ['lm/emb/w'] }));
  expect(frozen.layout([variable]).entries).toEqual([
    { name: 'lm/emb/w', shape: [3], offset: 0, size: 3, group: 'frozen', storage: 'bfloat16' },
  ]);
  expect(() => build(Learner.config({ optimizer: sgd() })).layout([variable])).toThrow(
    "variable 'lm/emb/w' is bfloat16, and training changes it: a step is smaller than the bits that bfloat16 has. Give its " +
      "layer dtype 'float32', or freeze it by bpropVariableExclusion; fpropDtype 'bfloat16' computes in bfloat16 with " +
      'variables in float32.',
  );
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
  for (const bad of [Number.NaN, Number.NEGATIVE_INFINITY])
    expect(await step(1, { 'lm/w': [3], 'lm/mean': [90, bad] })).toMatchObject({ isValidStep: 0 });
  expect([read('lm/w'), read('lm/mean'), read('lm/mean', 'ema')]).toEqual([[-2], [70, 80], [70, 80]]);
  expect(() => read('lm/mean', 'm')).toThrow();
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
  expect(() =>
    learner.createUpdater(layout, { params: params.subarray(1), grads: params, slots: {} }),
  ).toThrow("createUpdater: the layout has 16 elements, buffer 'params' has 15 elements.");
  for (const [field, problem] of [
    ['bpropVariableExclusion', "the pattern 'aa' matches no variable of the model. Did you mean 'a'?"],
    ['bpropVariableInclusion', "the pattern 'aa' matches no variable of the model. Did you mean 'a'?"],
  ] as const)
    expect(() =>
      build(Learner.config({ optimizer, [field]: ['aa'] })).layout([{ path: 'a', shape: [3] }]),
    ).toThrow(`Learner: ${problem} It is compared with the whole path; `);
  expect(() => learner.createUpdater(layout, { params, grads: params, slots: {} })).toThrow(
    "createUpdater: variables have slots of 16 elements, buffer 'slots.m' is missing.",
  );
});
