/** @file Activations against their formulas, and their gradients. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Tensor, tf } from '../../src/compiler/index.js';
import {
  build,
  type Config,
  Configurable,
  configurable,
  fromJSON,
  print,
  setPath,
  toJSON,
} from '../../src/hparams/index.js';
import {
  type BaseActivation,
  ClampedLinear,
  ClampedSwish,
  ELU,
  Exp,
  FeedForward,
  GELU,
  Identity,
  LayerNorm,
  LeakyReLU,
  QuickGELU,
  ReLU,
  ReLU6,
  Sigmoid,
  SiLU,
  Softplus,
  SquaredReLU,
  Swish,
  Tanh,
  TransformerFeedForward,
} from '../../src/layers/index.js';
import { Sgd } from '../../src/learners/index.js';
import { checkGradients, expectClose, randomTheta, run, tensor } from './helpers.js';

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
  ['QuickGELU', QuickGELU.config(), (x) => x * sigmoid(1.702 * x)],
  ['SiLU', SiLU.config(), (x) => x * sigmoid(x)],
  ['Swish', Swish.config(), (x) => x * sigmoid(x)],
  [
    'ClampedSwish',
    ClampedSwish.config({ limit: 2 }),
    (x) => Math.min(x, 2) * sigmoid(1.702 * Math.min(x, 2)),
  ],
  ['ClampedLinear', ClampedLinear.config({ limit: 2 }), (x) => Math.max(Math.min(x, 2), -2) + 1],
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

/** x + sin(a x)^2 / a (Ziyin et al., 2020). */
const snake = configurable(
  function snake({ a }: { a: number }) {
    return (x: Tensor): Tensor => tf.add(x, tf.div(tf.square(tf.sin(tf.mul(x, a))), a));
  },
  { a: z.number().positive().default(1) },
);

class Scaled extends Configurable.with({ factor: z.number().default(2) }) {
  call(x: Tensor): Tensor {
    return tf.mul(x, this.hp.factor);
  }
}

const dims = { inputDims: 3, outputDims: 3, hasBias: false };

test('a field of an activation takes functions, objects with call(x) and layers with fprop(x)', () => {
  const x = tensor([2, 3]);
  const outputsOf = (activationTpl: Config<FeedForward>['activationTpl']): [Tensor, string[]] => {
    const layer = build(FeedForward.config({ ...dims, activationTpl }));
    const theta = randomTheta(layer);
    if (Object.keys(theta).length === 1) checkGradients(layer, [x], (input) => layer.fprop(input!));
    return [run(theta, () => layer.fprop(x)), Object.keys(theta)];
  };
  const linear = [...outputsOf(Identity.config())[0].dataSync()];
  const formula = (v: number) => v + Math.sin(2 * v) ** 2 / 2;
  expectClose(outputsOf(snake.config({ a: 2 }))[0], linear.map(formula));
  expectClose(
    outputsOf(Scaled.config())[0],
    linear.map((v) => 2 * v),
  );
  expect(outputsOf(LayerNorm.config({ dim: 3 }))[1]).toEqual([
    'linear/w',
    'activation/scale',
    'activation/bias',
  ]);
});

test('functions as activations are saved, set by name, and reach the layers inside', () => {
  const config = TransformerFeedForward.config({ inputDims: 4, hiddenDims: 8 });
  setPath(config, 'activationTpl', 'snake(a=3)');
  expect(print(config, { defaults: 'hide' })).toContain('activationTpl : snake\nactivationTpl.a : 3');
  const layer = build(fromJSON(toJSON(config)) as typeof config);
  expect(layer.children.get('ffn_layer1')!.children.get('activation')!.hp).toHaveProperty('activation');
});

test('what activates nothing is an error that says what does', () => {
  const valid =
    'a config that builds a function of a tensor or an object with call(x), or a layer with fprop(x)';
  // @ts-expect-error an optimizer
  expect(() => FeedForward.config({ ...dims, activationTpl: Sgd.config({ learningRate: 1 }) })).toThrow(
    `FeedForward.activationTpl: expected ${valid}, got a Sgd config`,
  );
  // @ts-expect-error no config of the function
  expect(() => FeedForward.config({ ...dims, activationTpl: (x: Tensor) => x })).toThrow(
    `FeedForward.activationTpl: expected ${valid}, got function activationTpl`,
  );
  const config = FeedForward.config({ ...dims });
  expect(() => setPath(config, 'activationTpl', 'Snake')).toThrow(
    `activationTpl: expected ${valid}, got 'Snake'. Did you mean 'snake'?`,
  );
  const number = configurable(() => 3, {}, { name: 'number' });
  // @ts-expect-error a number
  expect(() => build(FeedForward.config({ ...dims, activationTpl: number.config() }))).toThrow(
    'expected a config that builds a function of a tensor or an object with call(x), got a number config',
  );
});
