/** @file Update rules against plain loops in double precision and against torch and optax; regularisation, averages. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Tensor, tf, widen } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Adagrad,
  Adam,
  AdamW,
  BaseOptimizer,
  type Direction,
  type GradientTransform,
  LinearRampupCosineDecay,
  Lion,
  RmsProp,
  type RuleInputs,
  Sgd,
  type SlotSpecs,
  type SlotVariable,
  slotLike,
  withNorm,
} from '../../../src/learners/index.js';
import { bench, learnerOf, noise } from '../fixtures.js';

/** torch.optim.AdamW's documented algorithm, one element, in double precision. */
function torchAdamW(
  param: number,
  grads: readonly number[],
  o: {
    lr: (t: number) => number;
    beta1: number;
    beta2: number;
    epsilon: number;
    epsilonRoot?: number;
    decay: number;
  },
) {
  let [p, m, v] = [param, 0, 0];
  for (const [i, g] of grads.entries()) {
    const lr = o.lr(i);
    p -= lr * o.decay * p;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const mHat = m / (1 - o.beta1 ** (i + 1));
    const vHat = v / (1 - o.beta2 ** (i + 1));
    p -= (lr * mHat) / (Math.sqrt(vHat + (o.epsilonRoot ?? 0)) + o.epsilon);
  }
  return { p, m, v };
}

const STEPS = 25;
const WIDTH = 40;
/** Gradients of very different sizes, tiny ones where epsilon counts among them. */
const gradsAt = (step: number) => noise(1000 + step, WIDTH).map((u, i) => u * 10 ** -(i % 10));
const start = noise(7, WIDTH);

/** The upper half of a float32, rounded to nearest even by arithmetic on doubles. */
function toBfloat16(x: number): number {
  if (x === 0) return x;
  const quantum = 2 ** (Math.floor(Math.log2(Math.abs(x))) - 7);
  const below = Math.floor(x / quantum);
  const rest = x / quantum - below;
  return (below + Number(rest > 0.5 || (rest === 0.5 && below % 2 !== 0))) * quantum;
}

test.each([
  ['Adam', Adam.config({ learningRate: 0.01, muDtype: 'bfloat16', clipThreshold: 0 })],
  ['Lion', Lion.config({ learningRate: 0.01, muDtype: 'bfloat16' })],
] as const)(
  '%s with the mean in bfloat16 is that of optax with mu_dtype: the step has the mean before it is rounded',
  async (name, optimizer) => {
    const { step, read, slots } = await bench({ w: start }, learnerOf(optimizer));
    const decay = name === 'Adam' ? 0.9 : 0.99;
    const epsilon = 1e-6;
    let [p, m, v] = [start, new Array<number>(WIDTH).fill(0), new Array<number>(WIDTH).fill(0)];
    for (let i = 0; i < STEPS; i++) {
      const grads = gradsAt(i).map(Math.fround);
      await step(i, { w: grads });
      const sum = (keep: number) =>
        m.map((x, k) =>
          Math.fround(Math.fround(x * Math.fround(keep)) + Math.fround(grads[k]! * Math.fround(1 - keep))),
        );
      const mean = sum(decay);
      v = v.map((x, k) => 0.999 * x + 0.001 * grads[k]! ** 2);
      p = p.map((x, k) =>
        name === 'Lion'
          ? x - 0.01 * Math.sign(sum(0.9)[k]!)
          : x -
            (0.01 * (mean[k]! / (1 - 0.9 ** (i + 1)))) /
              (Math.sqrt(v[k]! / (1 - 0.999 ** (i + 1))) + epsilon),
      );
      m = mean.map(toBfloat16);
    }
    expect(slots.m).toBeInstanceOf(Uint16Array);
    expect([...widen(Uint16Array.from(read('w', 'm')), 'bfloat16')]).toEqual(m);
    read('w').forEach((x, k) => void expect(x).toBeCloseTo(p[k]!, 5));
  },
);

for (const engine of ['onnx', 'eager'] as const) {
  test(`AdamW is torch.optim.AdamW to float32 rounding, decay on matrices alone (${engine})`, async () => {
    const schedule = LinearRampupCosineDecay.config({
      warmupSteps: 5,
      decayStart: 5,
      decayEnd: 25,
      max: 1,
      minRatio: 0.1,
    });
    const { step, read, params, layout } = await bench(
      { matrix: start, vector: start },
      learnerOf(
        AdamW.config({
          learningRate: 1e-2,
          lrSchedule: schedule,
          beta2: 0.99,
          decoupledWeightDecay: 0.1,
          skipLp1dVectors: true,
        }),
      ),
      { engine, shapes: { matrix: [4, 10] } },
    );
    for (let t = 0; t < STEPS; t++) await step(t, { matrix: gradsAt(t), vector: gradsAt(t) });
    const lr = (t: number) => 1e-2 * build(schedule).valueAt(t);
    for (const [name, decay] of [
      ['matrix', 0.1],
      ['vector', 0],
    ] as const) {
      for (let i = 0; i < WIDTH; i++) {
        const grads = Array.from({ length: STEPS }, (_, t) => Math.fround(gradsAt(t)[i]!));
        const expected = torchAdamW(start[i]!, grads, { lr, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, decay });
        // 25 roundings of a number below 1, of half a unit in the last place each.
        expect(Math.abs(read(name)[i]! - expected.p)).toBeLessThan(25 * 2 ** -25);
        // Gradients of both signs cancel in m: its rounding is that of their size.
        expect(Math.abs(read(name, 'm')[i]! - expected.m)).toBeLessThan(1e-6 * 10 ** -(i % 10));
        expect(Math.abs(read(name, 'v')[i]! / expected.v - 1)).toBeLessThan(2e-6);
      }
    }
    const used = new Set(
      layout.entries.flatMap((e) => Array.from({ length: e.size }, (_, i) => e.offset + i)),
    );
    for (const [i, value] of params.entries()) if (!used.has(i)) expect(value).toBe(0);
  });
}

test('Adam limits the root mean square of each variable’s update as Pax does', async () => {
  const options = {
    learningRate: 0.1,
    beta1: 0.5,
    beta2: 0.999,
    epsilon: 1e-6,
    epsilonRoot: 1e-12,
    clipThreshold: 0.8,
  };
  const { step, read } = await bench({ a: [1, 2, 3], b: [4, 5] }, learnerOf(Adam.config(options)));
  const grads = [
    { a: [1, -1, 0.5], b: [1e-3, 1e-7] },
    { a: [3, -0.1, 0.5], b: [1e-3, 1e-3] },
  ];
  for (const [t, values] of grads.entries()) await step(t, values);
  for (const [name, initial] of [
    ['a', [1, 2, 3]],
    ['b', [4, 5]],
  ] as const) {
    const p = [...initial] as number[];
    const m = p.map(() => 0);
    const v = p.map(() => 0);
    for (const [t, values] of grads.entries()) {
      // Pax's own form: the bias correction inside of the decay.
      const corrected = (beta: number) => (beta * (1 - beta ** t)) / (1 - beta ** (t + 1));
      const [b1, b2] = [corrected(0.5), corrected(0.999)];
      const update = p.map((_, i) => {
        const g = values[name][i]!;
        m[i] = b1 * m[i]! + (1 - b1) * g;
        v[i] = b2 * v[i]! + (1 - b2) * g * g;
        return m[i]! / (Math.sqrt(v[i]! + 1e-12) + 1e-6);
      });
      const rms = Math.sqrt(update.reduce((sum, u) => sum + u * u, 0) / update.length);
      for (const [i, u] of update.entries()) p[i]! -= (0.1 * u) / Math.max(1, rms / 0.8);
    }
    for (const [i, value] of read(name).entries()) expect(value).toBeCloseTo(p[i]!, 5);
  }
});

test.each([
  [0, false],
  [0.9, false],
  [0.9, true],
])(
  'Sgd with momentum %d, nesterov %s: weight decay does not pile up in the momentum',
  async (momentum, nesterov) => {
    const { step, read } = await bench(
      { w: [1, -2] },
      learnerOf(Sgd.config({ learningRate: 0.5, momentum, nesterov, decoupledWeightDecay: 0.2 })),
    );
    const p = [1, -2];
    const trace = [0, 0];
    for (let t = 0; t < 4; t++) {
      const grads = [0.1 * (t + 1), -0.3];
      await step(t, { w: grads });
      for (const [i, g] of grads.entries()) {
        trace[i] = g + momentum * trace[i]!;
        const sgd = nesterov ? g + momentum * trace[i]! : trace[i]!;
        p[i] = p[i]! - 0.5 * sgd - 0.5 * 0.2 * p[i]!;
      }
    }
    for (const [i, value] of read('w').entries()) expect(value).toBeCloseTo(p[i]!, 6);
  },
);

test('regularisers are added to the clipped gradient, not to vectors or marked variables', async () => {
  const { step, read } = await bench(
    { w: [3, -4], bias: [3, -4], marked: [3, -4] },
    learnerOf(
      Sgd.config({
        learningRate: 1,
        l2RegularizerWeight: 0.1,
        l1RegularizerWeight: 0.01,
        skipLp1dVectors: true,
        clipGradientNormToValue: 0.5,
      }),
    ),
    { shapes: { w: [1, 2], marked: [2, 1] }, collections: { marked: ['SKIP_LP_REGULARIZATION'] } },
  );
  const { gradScale } = await step(0, { w: [1, 0], bias: [0, 0], marked: [0, 0] });
  expect(gradScale).toBe(0.5);
  const near = (values: number[], expected: number[]) =>
    values.forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i]!, 6);
    });
  near(read('w'), [3 - 0.5 - 0.3 - 0.01, -4 + 0.4 + 0.01]);
  expect(read('bias')).toEqual([3, -4]);
  expect(read('marked')).toEqual([3, -4]);
});

test('slots are those that the rule needs', () => {
  const slots = (config: Config<BaseOptimizer>) => build(config).slotSpecs({ path: 'w', shape: [2, 3] });
  const slot = { shape: [2, 3], fill: 0, values: 'signed' };
  expect(slots(Sgd.config({ learningRate: 1 }))).toEqual({});
  expect(slots(Sgd.config({ learningRate: 1, momentum: 0.9 }))).toEqual({ m: slot });
  expect(slots(AdamW.config({ learningRate: 1 }))).toEqual({ m: slot, v: { ...slot, values: 'squares' } });
});

test('fields that exclude each other are named', () => {
  expect(() =>
    build(Sgd.config({ learningRate: 1, decoupledWeightDecay: 0.1, l2RegularizerWeight: 0.1 })),
  ).toThrow('Sgd: decoupledWeightDecay cannot be mixed with l1RegularizerWeight or l2RegularizerWeight.');
  expect(() =>
    build(Adam.config({ learningRate: 1, clipGradientNormToValue: 1, clipGradientSingleNormToValue: 2 })),
  ).toThrow('Adam: clipGradientNormToValue and clipGradientSingleNormToValue are exclusive: got 1 and 2.');
  expect(() => build(Adam.config({ learningRate: 1, epsilon: 0 }))).toThrow(
    '(Adam): epsilon and epsilonRoot must not both be 0; epsilon is 0 (at ',
  );
});

test.each([
  ['in one pass', Sgd.config({ learningRate: 0.1, emaDecay: 0.3 })],
  ['in the second of two', Adam.config({ learningRate: 0.1, clipThreshold: 0.5, emaDecay: 0.3 })],
])('emaDecay: an average that begins at the parameters, and follows fast at first, %s', async (_, config) => {
  const { step, read, slots } = await bench({ a: start }, learnerOf(config), { engine: 'eager' });
  const expected = [...read('a')];
  expect(read('a', 'ema')).toEqual(expected);
  for (let t = 0; t < STEPS; t++) {
    await step(t, { a: gradsAt(t) });
    const decay = Math.min(0.3, (1 + t) / (10 + t));
    for (const [i, value] of read('a').entries()) expected[i] = decay * expected[i]! + (1 - decay) * value;
  }
  for (const [i, value] of read('a', 'ema').entries()) {
    expect(Math.abs(value - expected[i]!)).toBeLessThan(1e-6);
  }
  expect(read('a', 'ema')).not.toEqual(read('a'));
  expect(Object.keys(slots).at(-1)).toBe('ema');
});

test('an average is kept only where it is asked for', () => {
  const learner = build(learnerOf(AdamW.config({ learningRate: 1 })));
  const layout = learner.layout([{ path: 'w', shape: [2] }]);
  expect([learner.averages, Object.keys(learner.slotLayouts(layout))]).toEqual([false, ['m', 'v']]);
  expect(() => AdamW.config({ learningRate: 1, emaDecay: 1 })).toThrow(
    'AdamW.emaDecay: expected a non-negative number below 1, got 1 ',
  );
});

/** An optimizer as a user writes one: the formula, and the names of its slots (Signum; Bernstein et al., 2018). */
class Signum extends BaseOptimizer.with({
  beta: z.number().min(0).lt(1).default(0.9).describe('Decay of the mean of gradients.'),
}) {
  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { m: slotLike(variable) };
  }

  protected direction({ grad, slots }: RuleInputs): Direction {
    const { beta } = this.hp;
    const m = tf.add(tf.mul(slots.m!, beta), tf.mul(grad, 1 - beta));
    return { direction: tf.sign(m), slots: { m } };
  }
}

/** The same, of gradients whose norm is 1 for each variable. */
class NormalizedSignum extends Signum {
  protected override gradientTransforms(): GradientTransform[] {
    const norm = (variable: Tensor): Tensor => tf.sqrt(tf.sum(tf.square(variable)));
    const normalize: GradientTransform = ({ groups }) =>
      withNorm(
        groups.map(({ variables, grad }) => ({
          variables,
          grad: () => variables.scaleEach(grad(), (variable) => tf.reciprocal(norm(variable))),
        })),
      );
    return [normalize, ...super.gradientTransforms()];
  }
}

test('an optimizer of one’s own is its formula; what all have comes with it', async () => {
  const fields = { learningRate: 0.1, decoupledWeightDecay: 0.5, clipGradientNormToValue: 1, emaDecay: 0.5 };
  const values = { a: noise(1, 16), b: noise(2, 16) };
  const { step, read } = await bench(values, learnerOf(Signum.config(fields)));
  const expected = values.a.map((p) => ({ p, m: 0 }));
  for (let t = 0; t < 3; t++) {
    const grads = { a: noise(10 + t, 16), b: noise(20 + t, 16) };
    const { gradScale } = await step(t, grads);
    expect(gradScale).toBeLessThan(1);
    for (const [i, state] of expected.entries()) {
      const g = grads.a[i]! * gradScale;
      state.m = 0.9 * state.m + 0.1 * g;
      state.p -= 0.1 * (0.5 * state.p + Math.sign(state.m));
    }
  }
  for (const [i, value] of read('a').entries()) expect(value).toBeCloseTo(expected[i]!.p, 6);
  for (const [i, value] of read('a', 'm').entries()) expect(value).toBeCloseTo(expected[i]!.m, 6);
  expect(read('a', 'ema')).not.toEqual(read('a'));
});

test('gradient transforms compose: each sees what the one before gives', async () => {
  const optimizer = NormalizedSignum.config({ beta: 0.99, learningRate: 0.1, clipGradientNormToValue: 1 });
  const { step, read } = await bench({ a: [0, 0], b: [0] }, learnerOf(optimizer));
  const report = await step(0, { a: [30, 40], b: [0.5] });
  expect(report.rawGradNorm).toBeCloseTo(Math.hypot(50, 0.5), 4);
  expect(report.clippedGradNorm).toBeCloseTo(1, 6);
  const scale = 0.01 / Math.SQRT2;
  for (const [i, value] of [0.6, 0.8].entries()) expect(read('a', 'm')[i]).toBeCloseTo(scale * value, 7);
  expect(read('b', 'm')[0]).toBeCloseTo(scale, 7);
});

test('slots begin with the values that the rule names, the average with the parameters', async () => {
  const { step, read } = await bench(
    { a: start },
    learnerOf(Adagrad.config({ learningRate: 0.5, emaDecay: 0.5 })),
  );
  expect(read('a', 'sum')).toEqual(start.map(() => Math.fround(0.1)));
  expect(read('a', 'ema')).toEqual(read('a'));
  const expected = start.map((p) => ({ p, sum: 0.1 }));
  for (let t = 0; t < 3; t++) {
    const grads = noise(10 + t, WIDTH);
    await step(t, { a: grads });
    for (const [i, state] of expected.entries()) {
      state.sum += grads[i]! ** 2;
      state.p -= (0.5 * grads[i]!) / Math.sqrt(state.sum);
    }
  }
  for (const [i, value] of read('a').entries()) expect(value).toBeCloseTo(expected[i]!.p, 5);
});

/** Gradients of three steps: of ordinary size, small, of both signs, and 0 until the last. */
const grads = [
  [0.5, -1e-3, 2, 0],
  [0.25, -2e-3, -1, 0],
  [-0.75, 3e-3, 0.5, 1e-4],
];

/** Parameters of 1, -2, 0.5 and 3 after these gradients, as torch.optim and optax move them in double precision. */
test.each([
  [
    'torch.optim.RMSprop',
    RmsProp.config({ learningRate: 0.1 }),
    [0.7980422586866024, -1.6571336724852768, 0.2557505550439755, 2.6838722023703823],
  ],
  [
    'torch.optim.RMSprop with momentum',
    RmsProp.config({ learningRate: 0.1, decay: 0.8, epsilon: 1e-3, momentum: 0.7 }),
    [0.5181261511849892, -1.7922137088229109, 0.1373563243382124, 2.99042806973497],
  ],
  [
    'torch.optim.RMSprop, centered',
    RmsProp.config({ learningRate: 0.1, epsilon: 1e-3, momentum: 0.5, centered: true }),
    [0.4403005945724274, -1.8211929982860253, 0.06336609888330386, 2.9902912621359223],
  ],
  [
    'optax.adagrad',
    Adagrad.config({ learningRate: 0.1 }),
    [0.9525150927470002, -1.999999950991137, 0.42389090052614026, 2.999968377240791],
  ],
  [
    'optax.adagrad that begins at 0',
    Adagrad.config({ learningRate: 0.1, initialAccumulatorValue: 0, epsilon: 1e-3 }),
    [0.9356820209394607, -1.99995161371035, 0.42290967468666163, 2.9996837738151103],
  ],
  ['optax.lion', Lion.config({ learningRate: 0.1 }), [0.9, -1.9, 0.4, 2.9]],
  [
    'optax.lion with weight decay',
    Lion.config({ learningRate: 0.1, beta1: 0.5, beta2: 0.8, decoupledWeightDecay: 0.3 }),
    [0.821583, -1.7342559999999998, 0.3592465, 2.6380190000000003],
  ],
])('%s', async (_, config, expected) => {
  const { step, read } = await bench({ w: [1, -2, 0.5, 3] }, learnerOf(config));
  for (const [t, w] of grads.entries()) await step(t, { w });
  for (const [i, value] of read('w').entries()) expect(value).toBeCloseTo(expected[i]!, 5);
});

test('Adagrad and RMSProp have only the slots that they read, and never divide 0 by 0', () => {
  const fills = (config: Config<BaseOptimizer>) =>
    Object.entries(build(config).slotSpecs({ path: 'w', shape: [2] })).map(([name, { fill }]) => [
      name,
      fill,
    ]);
  expect(fills(RmsProp.config({ learningRate: 1 }))).toEqual([['v', 0]]);
  expect(fills(RmsProp.config({ learningRate: 1, momentum: 0.9, centered: true }))).toEqual([
    ['v', 0],
    ['u', 0],
    ['m', 0],
  ]);
  expect(fills(Adagrad.config({ learningRate: 1, initialAccumulatorValue: 0.5 }))).toEqual([['sum', 0.5]]);
  expect(() => build(Adagrad.config({ learningRate: 1, initialAccumulatorValue: 0, epsilon: 0 }))).toThrow(
    '(Adagrad): initialAccumulatorValue and epsilon must not both be 0; ',
  );
  expect(() => RmsProp.config({ learningRate: 1, epsilon: 0 })).toThrow(
    'RmsProp.epsilon: expected a positive number, got 0 ',
  );
});
