/** @file Activations against their formulas, and their gradients. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseActivation,
  ELU,
  Exp,
  GELU,
  Identity,
  LeakyReLU,
  ReLU,
  ReLU6,
  Sigmoid,
  SiLU,
  Softplus,
  SquaredReLU,
  Swish,
  Tanh,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, run } from './helpers.js';

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** By Simpson's rule on the density: nothing in common with the code under test. */
function normalCdf(x: number): number {
  const steps = 2000;
  const density = (t: number): number => Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI);
  let sum = density(0) + density(x);
  for (let i = 1; i < steps; i++) sum += density((x * i) / steps) * (i % 2 ? 4 : 2);
  return 0.5 + (sum * x) / steps / 3;
}

const tanhGelu = (x: number): number =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

const cases: [string, Config<BaseActivation>, (x: number) => number][] = [
  ['Identity', Identity.config(), (x) => x],
  ['ReLU', ReLU.config(), (x) => Math.max(x, 0)],
  ['ReLU6', ReLU6.config(), (x) => Math.min(Math.max(x, 0), 6)],
  ['SquaredReLU', SquaredReLU.config(), (x) => Math.max(x, 0) ** 2],
  ['LeakyReLU', LeakyReLU.config({ negativeSlope: 0.2 }), (x) => (x > 0 ? x : 0.2 * x)],
  ['ELU', ELU.config({ alpha: 1.5 }), (x) => (x > 0 ? x : 1.5 * Math.expm1(x))],
  ['Sigmoid', Sigmoid.config(), sigmoid],
  ['Tanh', Tanh.config(), Math.tanh],
  ['GELU, exact', GELU.config({ approximate: false }), (x) => x * normalCdf(x)],
  ['GELU, approximate', GELU.config(), tanhGelu],
  ['SiLU', SiLU.config(), (x) => x * sigmoid(x)],
  ['Swish', Swish.config(), (x) => x * sigmoid(x)],
  ['Softplus', Softplus.config(), (x) => Math.log(1 + Math.exp(x))],
  ['Exp', Exp.config(), Math.exp],
];

// No point lies within a finite-difference step of a kink.
const POINTS = [-6.3, -2.1, -0.7, -0.1, 0.2, 0.9, 2.4, 5.8, 6.4];

test.each(cases)('%s', (_, config, formula) => {
  const layer = build(config);
  const x = tf.tensor2d(POINTS, [3, 3]);
  const outputs = run({}, () => layer.fprop(x));
  expect(outputs.shape).toEqual([3, 3]);
  expectClose(outputs, POINTS.map(formula), 2e-6);
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 9 });
});

test('Softplus and Sigmoid do not overflow', () => {
  const x = tf.tensor1d([-200, 200]);
  expectClose(
    run({}, () => build(Softplus.config()).fprop(x)),
    [0, 200],
  );
  expectClose(
    run({}, () => build(Sigmoid.config()).fprop(x)),
    [0, 1],
  );
});
