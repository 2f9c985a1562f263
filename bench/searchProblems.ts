/** @file Problems of hyperparameter search with known optima, all minimised; bench/peers/optuna_search.py has the same. */
import { choice, integer, real, type Space, type Values } from '../src/search/index.js';

interface Problem {
  readonly space: Space;
  readonly loss: (values: Values) => number;
}

function reals(count: number, low: number, high: number): Space {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, real(low, high)]));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const numbersOf = (values: Values): number[] => Object.values(values) as number[];
const log10 = (value: unknown): number => Math.log10(value as number);

const hartmannWeights = [1, 1.2, 3, 3.2];
const hartmannScales = [
  [10, 3, 17, 3.5, 1.7, 8],
  [0.05, 10, 17, 0.1, 8, 14],
  [3, 3.5, 1.7, 10, 17, 8],
  [17, 8, 0.05, 10, 0.1, 14],
];
const hartmannCentres = [
  [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
  [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
  [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.665],
  [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
];

const penalties: Readonly<Record<string, number>> = { relu: 0.3, gelu: 0, silu: 0.05, tanh: 0.8 };

/** By name. */
export const problems: Readonly<Record<string, Problem>> = {
  branin: {
    space: { x0: real(-5, 10), x1: real(0, 15) },
    loss: (values) => {
      const [x, y] = numbersOf(values) as [number, number];
      const curve = y - (5.1 / (4 * Math.PI ** 2)) * x * x + (5 / Math.PI) * x - 6;
      return curve ** 2 + 10 * (1 - 1 / (8 * Math.PI)) * Math.cos(x) + 10;
    },
  },
  hartmann6: {
    space: reals(6, 0, 1),
    loss: (values) => {
      const x = numbersOf(values);
      const distance = (i: number) =>
        sum(x.map((v, j) => hartmannScales[i]![j]! * (v - hartmannCentres[i]![j]!) ** 2));
      return -sum(hartmannWeights.map((weight, i) => weight * Math.exp(-distance(i))));
    },
  },
  ackley5: {
    space: reals(5, -32.768, 32.768),
    loss: (values) => {
      const x = numbersOf(values);
      const root = Math.sqrt(sum(x.map((v) => v * v)) / 5);
      const waves = sum(x.map((v) => Math.cos(2 * Math.PI * v))) / 5;
      return -20 * Math.exp(-0.2 * root) - Math.exp(waves) + 20 + Math.E;
    },
  },
  rosenbrock4: {
    space: reals(4, -5, 10),
    loss: (values) => {
      const x = numbersOf(values);
      return sum(x.slice(0, -1).map((v, i) => 100 * (x[i + 1]! - v * v) ** 2 + (1 - v) ** 2));
    },
  },
  mixed: {
    space: {
      learningRate: real(1e-5, 1, { log: true }),
      numLayers: integer(1, 12),
      modelDims: integer(32, 512, { step: 32 }),
      dropout: real(0, 0.5),
      activation: choice(['relu', 'gelu', 'silu', 'tanh']),
    },
    loss: ({ learningRate, numLayers, modelDims, dropout, activation }) => {
      const layers = numLayers as number;
      return (
        (log10(learningRate) + 2.5 + 0.1 * layers) ** 2 +
        0.02 * (layers - 8) ** 2 +
        2 * ((modelDims as number) / 512 - 0.7) ** 2 +
        3 * ((dropout as number) - 0.1 - 0.01 * layers) ** 2 +
        penalties[activation as string]!
      );
    },
  },
  conditional: {
    space: {
      optimizer: choice(['sgd', 'adam', 'lion']),
      weightDecay: real(1e-5, 1, { log: true }),
      sgdRate: real(1e-4, 10, { log: true, when: { optimizer: 'sgd' } }),
      momentum: real(0, 0.99, { when: { optimizer: 'sgd' } }),
      adamRate: real(1e-6, 1e-1, { log: true, when: { optimizer: 'adam' } }),
      beta2: real(0.9, 0.9999, { when: { optimizer: 'adam' } }),
      lionRate: real(1e-6, 1e-1, { log: true, when: { optimizer: 'lion' } }),
    },
    loss: ({ optimizer, weightDecay, sgdRate, momentum, adamRate, beta2, lionRate }) => {
      const common = 0.1 * (log10(weightDecay) + 2) ** 2;
      if (optimizer === 'sgd') {
        const inertia = momentum as number;
        return 0.3 + common + (log10(sgdRate) + 1 + inertia) ** 2 + (inertia - 0.9) ** 2;
      }
      if (optimizer === 'lion') return 0.1 + common + 2 * (log10(lionRate) + 4) ** 2;
      return common + (log10(adamRate) + 3) ** 2 + 0.2 * (Math.log10(1 - (beta2 as number)) + 2) ** 2;
    },
  },
};
