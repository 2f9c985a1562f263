/** @file Update rules against optax's and PyTorch's (scripts/record_optimizers.py), and the sums that Pax's runs have. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Adafactor,
  Adagrad,
  Adam,
  AdamW,
  type BaseOptimizer,
  Lamb,
  Lars,
  Lion,
  Muon,
  RmsProp,
  ScheduleFreeAdamW,
  Sgd,
  Shampoo,
  Sm3,
  Soap,
  StaticAccumulator,
} from '../../../src/learners/index.js';
import { bench, learnerOf, noise } from '../fixtures.js';

const ELEMENTS = Array.from({ length: 24 }, (_, i) => i + 1);
const START = ELEMENTS.map((i) => Math.sin(i));
const gradientAt = (step: number): number[] => ELEMENTS.map((i) => Math.sin(0.7 * i * (step + 1)));

/** Gradients of which no row is a sum of others. */
const independentAt = (step: number): number[] => ELEMENTS.map((i) => Math.sin(0.7 * i ** 2 * (step + 1)));

/** The parameters after each step of a matrix [4, 6], with a rate of 0.1; behind them their average, if there is one. */
async function after(
  steps: number,
  config: Config<BaseOptimizer>,
  shape = [4, 6],
  gradients = gradientAt,
): Promise<number[][]> {
  const { step, read, slots } = await bench({ w: START }, learnerOf(config), { shapes: { w: shape } });
  const all: number[][] = [];
  for (let t = 0; t < steps; t++) {
    await step(t, { w: gradients(t) });
    all.push([...read('w'), ...(slots.ema ? read('w', 'ema') : [])]);
  }
  return all;
}

const learningRate = 0.1;

const { versions: _, ...recorded } = JSON.parse(
  readFileSync('test/fixtures/learners/optimizers.json', 'utf8'),
) as Record<string, number[]>;

const shampoo = {
  ...{ learningRate, beta2: 0.95, matrixEpsilon: 1e-3, relativeMatrixEpsilon: false },
  preconditioningComputeSteps: 1,
};

const ours: Record<string, Config<BaseOptimizer>> = {
  'optax.lamb': Lamb.config({ learningRate }),
  'optax.lamb, decayed': Lamb.config({
    learningRate,
    beta1: 0.8,
    beta2: 0.95,
    epsilon: 1e-3,
    weightDecay: 0.3,
  }),
  'optax.lars': Lars.config({ learningRate, weightDecay: 0.2, trustCoefficient: 0.3 }),
  'optax.lars, Nesterov': Lars.config({
    learningRate,
    epsilon: 0.5,
    momentum: 0.7,
    nesterov: true,
    trustCoefficient: 0.5,
  }),
  'optax.sm3': Sm3.config({ learningRate }),
  'optax.contrib.muon': Muon.config({ learningRate, nesterov: false, scale: 'shape' }),
  'optax.contrib.schedule_free_adamw': ScheduleFreeAdamW.config({
    ...{ learningRate, beta1: 0.8, beta2: 0.95 },
    decoupledWeightDecay: 0.1,
  }),
  ScalableShampoo: Shampoo.config({ ...shampoo, startPreconditioningStep: 0, graftType: 'sgd' }),
  "ScalableShampoo, RMSProp's size": Shampoo.config({
    ...{ ...shampoo, startPreconditioningStep: 2, graftType: 'rmsprop', diagonalEpsilon: 1e-10 },
    ...{ nesterov: false, movingAverageForMomentum: true },
  }),
  "ScalableShampoo, AdaGrad's size": Shampoo.config({
    ...{
      ...shampoo,
      startPreconditioningStep: 1,
      graftType: 'adagrad',
      diagonalEpsilon: 1e-10,
      blockSize: 2,
    },
  }),
  'torch.optim.Muon': Muon.config({ learningRate, scale: 'shape' }),
  'torch.optim.Muon, as Adam': Muon.config({ learningRate, decoupledWeightDecay: 0.1 }),
};

const soap = { learningRate, preconditionFrequency: 2 };

test.each<[string, number[], Config<BaseOptimizer>]>([
  ['SOAP', [4, 6], Soap.config({ ...soap, maxPreconditionDim: 5 })],
  [
    'SOAP, three dimensions',
    [2, 3, 4],
    Soap.config({ ...soap, beta1: 0.8, beta2: 0.9, shampooBeta: 0.7, normalizeGrads: true }),
  ],
  ['SOAP, merged', [2, 2, 6], Soap.config({ ...soap, maxPreconditionDim: 4, mergeDims: true })],
  ['SOAP, vector', [24], Soap.config({ ...soap, correctBias: false })],
])('%s', async (name, shape, config) => {
  const found = (await after(6, config, shape, independentAt)).at(-1)!;
  const furthest = Math.max(...recorded[name]!.map((value, i) => Math.abs(value - found[i]!)));
  expect(furthest).toBeLessThan(2e-5);
});

test.each(Object.entries(recorded).filter(([name]) => !name.startsWith('SOAP')))(
  '%s',
  async (name, expected) => {
    const found = (await after(4, ours[name]!)).at(-1)!;
    const furthest = Math.max(...expected.map((value, i) => Math.abs(value - found[i]!)));
    const largest = Math.max(...expected.map(Math.abs));
    expect(furthest / largest).toBeLessThan(3e-6);
  },
);

/** Sums of squares after three steps, as Pax has them. */
test.each<[string, Config<BaseOptimizer>, number[]]>([
  ['Sgd', Sgd.config({ learningRate, momentum: 0.9 }), [12.313713, 12.543875, 13.146767]],
  [
    "Sgd, Nesterov's form",
    Sgd.config({ learningRate, momentum: 0.9, nesterov: true }),
    [12.323816, 13.100466, 14.168636],
  ],
  ['Adam', Adam.config({ learningRate }), [12.377632, 12.615585, 12.958851]],
  [
    'Adam, decayed, without a limit',
    Adam.config({ learningRate, beta2: 0.99, decoupledWeightDecay: 0.1, clipThreshold: 0 }),
    [12.132175, 12.127825, 12.225476],
  ],
  ['Lion', Lion.config({ learningRate }), [12.377633, 12.799892, 13.119317]],
  ['Adagrad', Adagrad.config({ learningRate }), [12.300552, 12.500296, 12.557556]],
  ['Lamb', Lamb.config({ learningRate }), [12.372721, 12.575712, 12.992696]],
  [
    'ShardedAdagrad',
    Adagrad.config({ learningRate, initialAccumulatorValue: 0, epsilon: 1e-12 }),
    [12.377633, 12.65698, 12.830989],
  ],
  [
    'StaticAccumulator of 2 over Sgd',
    StaticAccumulator.config({ optimizer: Sgd.config({ learningRate }), numSubBatches: 2 }),
    [12.53336, 12.48611, 12.48611],
  ],
])('%s has the sums of squares of Pax', async (_, config, sums) => {
  const found = (await after(3, config)).map((w) => w.reduce((sum, x) => sum + x * x, 0));
  for (const [t, sum] of sums.entries()) expect(Math.abs(found[t]! - sum)).toBeLessThan(5e-6);
});

/** Trax's rules of a matrix [4, 6] (trax/optimizers), as plain loops: the parameters after a step. */
const ofTrax: Record<string, () => (w: number[], g: number[], step: number) => number[]> = {
  Momentum: () => {
    let v = START.map(() => 0);
    return (w, g) => {
      v = v.map((each, i) => 0.9 * each + g[i]!);
      return w.map((each, i) => (1 - 1e-2) * each - learningRate * (0.9 * v[i]! + g[i]!));
    };
  },
  RMSProp: () => {
    let v = START.map(() => 1);
    return (w, g) => {
      v = v.map((each, i) => 0.9 * each + 0.1 * g[i]! ** 2);
      return w.map((each, i) => each - (learningRate * g[i]!) / (Math.sqrt(v[i]!) + 1e-8));
    };
  },
  SM3: () => {
    let [m, rows, columns] = [START.map(() => 0), Array(4).fill(0), Array(6).fill(0)] as number[][];
    return (w, g) => {
      const v = g.map((each, i) => Math.min(rows![Math.floor(i / 6)]!, columns![i % 6]!) + each ** 2);
      rows = rows!.map((_, r) => Math.max(...v.filter((_, i) => Math.floor(i / 6) === r)));
      columns = columns!.map((_, c) => Math.max(...v.filter((_, i) => i % 6 === c)));
      m = m!.map((each, i) => 0.9 * each + (0.1 * g[i]!) / Math.sqrt(v[i]!));
      return w.map((each, i) => each - learningRate * m![i]!);
    };
  },
  Adafactor: () => {
    let [rows, columns] = [Array(4).fill(0), Array(6).fill(0)] as number[][];
    return (w, g, step) => {
      const d = 1 - (step + 1) ** -0.8;
      const mean = (of: number[]) => of.reduce((a, b) => a + b, 0) / of.length;
      const squares = g.map((each) => each ** 2 + 1e-30);
      const own = (keep: (i: number) => boolean) => mean(squares.filter((_, i) => keep(i)));
      rows = rows!.map((each, r) => d * each + (1 - d) * own((i) => Math.floor(i / 6) === r));
      columns = columns!.map((each, c) => d * each + (1 - d) * own((i) => i % 6 === c));
      const y = g.map(
        (each, i) => each / Math.sqrt(rows![Math.floor(i / 6)]! / mean(rows!)) / Math.sqrt(columns![i % 6]!),
      );
      const limit = Math.max(1, Math.sqrt(mean(y.map((each) => each ** 2))));
      const scale = learningRate * Math.max(Math.sqrt(mean(w.map((each) => each ** 2))), 1e-3);
      return w.map((each, i) => (1 - 1e-2) * each - (scale * y[i]!) / limit);
    };
  },
};

const fixed = { decoupledWeightDecay: 1e-2, fixedWeightDecay: true };
const asTrax: Record<string, Config<BaseOptimizer>> = {
  Momentum: Sgd.config({ learningRate, momentum: 0.9, nesterov: true, ...fixed }),
  RMSProp: RmsProp.config({ learningRate, initialScale: 1 }),
  SM3: Sm3.config({ learningRate }),
  Adafactor: Adafactor.config({
    ...{ learningRate, decayMethod: 'pow', minDimSizeToFactor: 1, multiplyByParameterScale: true },
    ...fixed,
  }),
};

test.each(Object.entries(ofTrax))('%s of Trax', async (name, begin) => {
  const step = begin();
  let w = START;
  for (let t = 0; t < 3; t++) w = step(w, gradientAt(t), t);
  const found = (await after(3, asTrax[name]!)).at(-1)!;
  expect(Math.max(...w.map((each, i) => Math.abs(each - found[i]!)))).toBeLessThan(2e-6);
});

test('a cautious step has the signs of the gradient alone, and as large a mean', async () => {
  const config = Lion.config({ learningRate, beta1: 0.9, beta2: 0.9, cautious: true });
  const { step, read } = await bench({ a: [0, 0, 0, 0], b: [0, 0] }, learnerOf(config));
  await step(0, { a: [1, 1, 1, 1], b: [1, -1] });
  expect([...read('a'), ...read('b')].map((x) => Math.round(x * 1e6) / 1e6)).toEqual([
    -0.1, -0.1, -0.1, -0.1, -0.1, 0.1,
  ]);
  // Against the mean: 0.9 * 0.1 of one sign, 0.1 * 0.5 of the other.
  await step(1, { a: [1, -0.5, -0.5, -0.5], b: [-0.5, 0.5] });
  expect(read('a').map((x) => Math.round(x * 1e6) / 1e6)).toEqual([-0.5, -0.1, -0.1, -0.1]);
  expect(read('b').map((x) => Math.round(x * 1e6) / 1e6)).toEqual([-0.1, 0.1]);
});

test('Muon takes vectors by the rule of Adam, and each matrix of a stack by itself', async () => {
  const vector = [0.3, -0.2, 0.1];
  const grads = { v: [1, -2, 0.5], stack: gradientAt(0) };
  const adam = await bench({ v: vector }, learnerOf(AdamW.config({ learningRate, epsilon: 1e-6 })));
  const stacked = await bench(
    { v: vector, stack: START },
    learnerOf(Muon.config({ learningRate, decoupledWeightDecay: 0.01 })),
    {
      shapes: { stack: [2, 3, 4] },
      repeatPrefix: { stack: [2] },
    },
  );
  const one = await bench(
    { w: START.slice(12) },
    learnerOf(Muon.config({ learningRate, decoupledWeightDecay: 0.01 })),
    {
      shapes: { w: [3, 4] },
    },
  );
  await adam.step(0, { v: grads.v });
  await stacked.step(0, grads);
  await one.step(0, { w: grads.stack.slice(12) });
  for (const [i, value] of stacked.read('v').entries()) expect(value).toBeCloseTo(adam.read('v')[i]!, 6);
  for (const [i, value] of stacked.read('stack').slice(12).entries())
    expect(value).toBeCloseTo(one.read('w')[i]!, 6);
});

test('Muon in bfloat16 takes nearly the step of float32', async () => {
  const w = noise(3, 64 * 80);
  const [exact, rounded] = await Promise.all(
    (['float32', 'bfloat16'] as const).map(async (newtonSchulzDtype) => {
      const config = Muon.config({ learningRate, newtonSchulzDtype, scale: 'shape' });
      const { step, read } = await bench({ w: Array(w.length).fill(0) }, learnerOf(config), {
        shapes: { w: [64, 80] },
      });
      await step(0, { w });
      return read('w');
    }),
  );
  const far = Math.hypot(...exact!.map((x, i) => x - rounded![i]!)) / Math.hypot(...exact!);
  expect(far).toBeGreaterThan(1e-5);
  expect(far).toBeLessThan(0.05);
});

test('Sm3 keeps a vector for each dimension, and elements without a gradient stay', async () => {
  const { step, read } = await bench(
    { w: [1, 2, 3, 4, 5, 6], scale: [1] },
    learnerOf(Sm3.config({ learningRate })),
    {
      shapes: { w: [2, 3], scale: [] },
    },
  );
  await step(0, { w: [3, 0, 0, 4, 0, 0], scale: [2] });
  expect([read('w', 's0'), read('w', 's1'), read('scale', 's0')]).toEqual([[9, 16], [16, 0, 0], [4]]);
  expect(read('w').map((x) => Math.round(x * 1e5) / 1e5)).toEqual([0.99, 2, 3, 3.99, 5, 6]);
});

test('StaticAccumulator takes whole steps of its optimizer, and does not count a step that is not valid', async () => {
  const optimizer = Adam.config({ learningRate, decoupledWeightDecay: 0.1 });
  const shapes = { w: [3, 4], stack: [2, 6] };
  const repeatPrefix = { stack: [2] };
  const values = { w: START.slice(12), stack: START.slice(12) };
  const means = (of: number[]) => gradientAt(0).map((each, i) => (each + of[i]!) / 2);
  const each = (all: number[]) => ({ w: all.slice(0, 12), stack: all.slice(12) });
  const accumulated = await bench(
    values,
    learnerOf(StaticAccumulator.config({ optimizer, numSubBatches: 2 })),
    {
      shapes,
      repeatPrefix,
    },
  );
  const whole = await bench(values, learnerOf(optimizer), { shapes, repeatPrefix });
  await accumulated.step(0, each(gradientAt(0)));
  expect(accumulated.read('w')).toEqual(START.slice(12).map(Math.fround));
  const bad = await accumulated.step(1, each(gradientAt(1).fill(Number.NaN)));
  expect([bad.isValidStep, accumulated.read('stack', 'gradientCount')]).toEqual([0, [1, 1]]);
  await accumulated.step(1, each(gradientAt(1)));
  await whole.step(0, each(means(gradientAt(1))));
  for (const name of ['w', 'stack'])
    for (const [i, value] of whole.read(name).entries())
      expect(accumulated.read(name)[i]!).toBeCloseTo(value, 6);
  expect([...accumulated.read('w', 'gradientSum'), ...accumulated.read('w', 'gradientCount')]).toEqual(
    Array(13).fill(0),
  );
});

test("StaticAccumulator refuses what is its optimizer's, and its optimizer what is its own", () => {
  const optimizer = Sgd.config({ learningRate });
  expect(() => build(StaticAccumulator.config({ optimizer, decoupledWeightDecay: 0.1 }))).toThrow(
    'StaticAccumulator: decoupledWeightDecay is a matter of the step with the mean gradient: set optimizer.decoupledWeightDecay.',
  );
  expect(() =>
    build(StaticAccumulator.config({ optimizer: Sgd.config({ learningRate, clipGradientNormToValue: 1 }) })),
  ).toThrow(
    'StaticAccumulator: optimizer.clipGradientNormToValue is a matter of each step: set clipGradientNormToValue beside optimizer.',
  );
});
