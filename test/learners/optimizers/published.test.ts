/** @file Update rules against optax's and PyTorch's (scripts/record_optimizers.py), and the sums that Pax's runs have. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Config } from '../../../src/hparams/index.js';
import {
  Adagrad,
  Adam,
  AdamW,
  type BaseOptimizer,
  Lamb,
  Lars,
  Lion,
  Muon,
  Sgd,
  Sm3,
} from '../../../src/learners/index.js';
import { bench, learnerOf } from '../fixtures.js';

const ELEMENTS = Array.from({ length: 24 }, (_, i) => i + 1);
const START = ELEMENTS.map((i) => Math.sin(i));
const gradientAt = (step: number): number[] => ELEMENTS.map((i) => Math.sin(0.7 * i * (step + 1)));

/** The parameters after each step of a matrix [4, 6], with a rate of 0.1. */
async function after(steps: number, config: Config<BaseOptimizer>): Promise<number[][]> {
  const { step, read } = await bench({ w: START }, learnerOf(config), { shapes: { w: [4, 6] } });
  const all: number[][] = [];
  for (let t = 0; t < steps; t++) {
    await step(t, { w: gradientAt(t) });
    all.push(read('w'));
  }
  return all;
}

const learningRate = 0.1;

const { versions: _, ...recorded } = JSON.parse(
  readFileSync('test/fixtures/learners/optimizers.json', 'utf8'),
) as Record<string, number[]>;

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
  'torch.optim.Muon': Muon.config({ learningRate, scale: 'shape' }),
  'torch.optim.Muon, as Adam': Muon.config({ learningRate, decoupledWeightDecay: 0.1 }),
};

test.each(Object.entries(recorded))('%s', async (name, expected) => {
  const found = (await after(4, ours[name]!)).at(-1)!;
  const furthest = Math.max(...expected.map((value, i) => Math.abs(value - found[i]!)));
  const largest = Math.max(...expected.map(Math.abs));
  expect(furthest / largest).toBeLessThan(3e-6);
});

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
])('%s has the sums of squares of Pax', async (_, config, sums) => {
  const found = (await after(3, config)).map((w) => w.reduce((sum, x) => sum + x * x, 0));
  for (const [t, sum] of sums.entries()) expect(Math.abs(found[t]! - sum)).toBeLessThan(5e-6);
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
