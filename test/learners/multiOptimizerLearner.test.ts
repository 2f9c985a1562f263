/** @file Several optimizers, each for the variables of its pattern: groups, clipping, reports, and settings that clash. */
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import { Adafactor, Adam, AdamW, Lion, MultiOptimizerLearner, Sgd } from '../../src/learners/index.js';
import { bench, noise } from './fixtures.js';

const learner = (values: Partial<Config<MultiOptimizerLearner>> = {}) =>
  MultiOptimizerLearner.config({
    optimizer: Sgd.config({ learningRate: 1 }),
    auxiliaryOptimizers: [
      Sgd.config({ learningRate: 0.5, momentum: 0.5, decoupledWeightDecay: 0.5 }),
      Lion.config({ learningRate: 0.25 }),
    ],
    auxiliaryRegex: ['lm/emb/.*', 'lm/head'],
    auxiliaryNames: ['embeddings', 'head'],
    ...values,
  });
const values = { 'lm/w': [1, 2], 'lm/emb/w': [3, 4], 'lm/head': [5], 'lm/emb/b': [6] };
const gradients = { 'lm/w': [3, 4], 'lm/emb/w': [0, 8], 'lm/head': [-6], 'lm/emb/b': [6] };
const norm = Math.hypot(3, 4, 8, 6, 6);

test('each variable follows its own optimizer, with its slots and its weight decay alone', async () => {
  const { step, read, layout, slots } = await bench(values, learner());
  expect(layout.entries.map(({ name, group }) => [name, group])).toEqual([
    ['lm/w', 'decay'],
    ['lm/emb/w', 'embeddings/decay'],
    ['lm/emb/b', 'embeddings/decay'],
    ['lm/head', 'head/decay'],
  ]);
  const report = await step(0, gradients);
  expect(report.learningRate).toBe(1);
  expect(report.auxiliary).toEqual({ embeddings: 0.5, head: 0.25 });
  expect(report.rawGradNorm).toBeCloseTo(norm, 5);
  expect(read('lm/w')).toEqual([-2, -2]);
  expect(read('lm/emb/w')).toEqual([3 * 0.75, 4 * 0.75 - 4]);
  expect(read('lm/emb/b')).toEqual([6 * 0.75 - 3]);
  expect(read('lm/head')).toEqual([5.25]);
  expect(read('lm/emb/w', 'm')).toEqual([0, 8]);
  // Momentum and Lion's mean are one slot; plain descent has none.
  expect(Object.entries(slots).map(([name, { length }]) => [name, length])).toEqual([['m', 48]]);
  await step(1, gradients);
  expect(read('lm/emb/w', 'm')).toEqual([0, 12]);
});

test('elementwise rules and those of single variables stand side by side, one average over all', async () => {
  const {
    step,
    read,
    layout,
    learner: built,
  } = await bench(
    { 'lm/w': noise(1, 12), 'lm/emb/w': noise(2, 12), 'lm/head': [5] },
    learner({
      optimizer: Adafactor.config({ learningRate: 0.1, minDimSizeToFactor: 2, emaDecay: 0.5 }),
      auxiliaryOptimizers: [AdamW.config({ learningRate: 0.1 })],
      auxiliaryRegex: ['lm/emb/w'],
      auxiliaryNames: ['embeddings'],
    }),
    { shapes: { 'lm/w': [3, 4], 'lm/emb/w': [3, 4] } },
  );
  const sizes = Object.entries(built.slotLayouts(layout)).map(([name, { entries }]) => [
    name,
    entries.map((entry) => `${entry.name} [${entry.shape}]`),
  ]);
  expect(sizes).toEqual([
    ['vr', ['lm/w [3]']],
    ['vc', ['lm/w [4]']],
    ['v', ['lm/head [1]', 'lm/emb/w [3,4]']],
    ['m', ['lm/emb/w [3,4]']],
    ['ema', ['lm/w [3,4]', 'lm/head [1]', 'lm/emb/w [3,4]']],
  ]);
  const before = read('lm/emb/w');
  await step(0, { 'lm/w': noise(3, 12), 'lm/emb/w': noise(4, 12), 'lm/head': [1] });
  // The first decay of an average is a tenth.
  for (const [i, value] of read('lm/emb/w').entries())
    expect(read('lm/emb/w', 'ema')[i]).toBeCloseTo(0.1 * before[i]! + 0.9 * value, 6);
  expect(read('lm/head')[0]).toBeCloseTo(4.9, 6);
});

test('one norm clips all gradients, or each optimizer its own', async () => {
  const auxiliaryOptimizers = [
    Sgd.config({ learningRate: 1, clipGradientSingleNormToValue: 2 }),
    Sgd.config({ learningRate: 1 }),
  ];
  const optimizer = Sgd.config({ learningRate: 1, clipGradientNormToValue: 1 });
  const together = await bench(
    values,
    learner({
      optimizer,
      auxiliaryOptimizers: [Sgd.config({ learningRate: 1 }), Sgd.config({ learningRate: 1 })],
    }),
  );
  expect((await together.step(0, gradients)).gradScale).toBeCloseTo(1 / norm, 6);
  expect(together.read('lm/head')[0]).toBeCloseTo(5 + 6 / norm, 5);
  const apart = await bench(values, learner({ optimizer, auxiliaryOptimizers, applySeparateScaling: true }));
  const report = await apart.step(0, gradients);
  expect(report).toMatchObject({ gradScale: 1, isValidStep: 1 });
  expect(report.clippedGradNorm).toBeCloseTo(Math.hypot(1, 2, 2, 6), 5);
  for (const [name, expected] of Object.entries({
    'lm/w': [1 - 0.6, 2 - 0.8],
    'lm/emb/w': [3, 4 - 2],
    'lm/emb/b': [6 - 2],
    'lm/head': [11],
  }))
    for (const [i, value] of apart.read(name).entries()) expect(value).toBeCloseTo(expected[i]!, 5);
});

test('frozen and replaced variables are of no optimizer', async () => {
  const { layout, learner: built } = await bench(
    { 'lm/w': [1], 'lm/emb/w': [2], 'lm/emb/mean': [3], 'lm/head': [4] },
    learner({
      bpropVariableExclusion: ['lm/emb/w', 'lm/head'],
      auxiliaryOptimizers: [Adam.config({ learningRate: 1 })],
      auxiliaryRegex: ['lm/w'],
      auxiliaryNames: ['all'],
    }),
    { collections: { 'lm/emb/mean': ['NON_TRAINABLE'] } },
  );
  expect(layout.entries.map(({ name, group }) => [name, group])).toEqual([
    ['lm/w', 'all/decay'],
    ['lm/emb/mean', 'nonTrainable'],
    ['lm/emb/w', 'frozen'],
    ['lm/head', 'frozen'],
  ]);
  expect(built.slotLayouts(layout).m!.entries.map(({ name }) => name)).toEqual(['lm/w']);
});

test('bad settings are named', () => {
  const place = (config: Config<MultiOptimizerLearner>) =>
    build(config).layout(Object.entries(values).map(([path, { length }]) => ({ path, shape: [length] })));
  const sgd = (fields = {}) => Sgd.config({ learningRate: 1, ...fields });
  const two = (first: Config<Sgd>) => ({ auxiliaryOptimizers: [first, sgd()] });
  for (const [fields, problem] of [
    [
      { auxiliaryNames: ['one'] },
      'auxiliaryOptimizers, auxiliaryRegex and auxiliaryNames need the same length: got 2, 2 and 1.',
    ],
    [{ auxiliaryNames: ['a', 'a'] }, "auxiliaryNames has 'a' twice; give each optimizer a name of its own."],
    [
      two(sgd({ emaDecay: 0.5 })),
      "auxiliaryOptimizers[0], 'embeddings', has emaDecay 0.5, and averages are those of all variables: set " +
        'optimizer.emaDecay.',
    ],
    [
      two(sgd({ clipGradientNormToValue: 1 })),
      "auxiliaryOptimizers[0], 'embeddings', clips gradients, and optimizer clips all together: set " +
        'applySeparateScaling, or clip by optimizer.',
    ],
    [{ auxiliaryRegex: ['lm/emb/.*', '('] }, "'(' is not a regular expression: "],
    [
      { auxiliaryRegex: ['lm/emb/.*', 'lm/haed'] },
      "the pattern 'lm/haed' matches no variable that moves. Did you mean 'lm/head'? It is compared with the whole " +
        'path; model_params.txt and luthier analyze list the paths.',
    ],
    [
      { auxiliaryRegex: ['lm/emb/.*', 'lm/.*b'] },
      "auxiliaryRegex: 'lm/emb/.*' and 'lm/.*b' both match 'lm/emb/b'; let one of them leave it out, as " +
        '(?!lm/emb/b$)lm/.*b.',
    ],
    [
      { bpropVariableExclusion: ['lm/head'] },
      "the pattern 'lm/head' matches no variable that moves. It is compared with the whole path; model_params.txt and " +
        'luthier analyze list the paths.',
    ],
  ] as const)
    expect(() => place(learner(fields as object))).toThrow(`MultiOptimizerLearner: ${problem}`);
  expect(() => learner({ auxiliaryNames: ['a/b', 'c'] })).toThrow(
    "MultiOptimizerLearner.auxiliaryNames[0]: expected a string like /^\\w[\\w-]*$/, got 'a/b' ",
  );
});
