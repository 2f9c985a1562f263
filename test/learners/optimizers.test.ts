/** @file Update rules against plain loops in double precision: Sgd, Adam, AdamW, regularisation. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  Adam,
  AdamW,
  BaseOptimizer,
  type Direction,
  type GradientTransform,
  LinearRampupCosineDecay,
  type NamedTensors,
  Sgd,
  withNorm,
} from '../../src/learners/index.js';
import { bench, learnerOf, noise } from './fixtures.js';

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
  expect(build(Sgd.config({ learningRate: 1 })).stateNames).toEqual([]);
  expect(build(Sgd.config({ learningRate: 1, momentum: 0.9 })).stateNames).toEqual(['m']);
  expect(build(AdamW.config({ learningRate: 1 })).stateNames).toEqual(['m', 'v']);
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
  expect([learner.averages, learner.slotNames]).toEqual([false, ['m', 'v']]);
  expect(() => AdamW.config({ learningRate: 1, emaDecay: 1 })).toThrow(
    'AdamW.emaDecay: expected a non-negative number below 1, got 1 ',
  );
});

/** An optimizer as a user writes one: the formula, and the names of its slots (Chen et al., 2023). */
class Lion extends BaseOptimizer.with({
  beta1: z.number().min(0).lt(1).default(0.9).describe('Part of the mean in the direction.'),
  beta2: z.number().min(0).lt(1).default(0.99).describe('Decay of the mean of gradients.'),
}) {
  initialSlots(): Record<string, number> {
    return { m: 0 };
  }

  protected direction(grad: Tensor, { m }: NamedTensors): Direction {
    const { beta1, beta2 } = this.hp;
    return {
      direction: tf.sign(tf.add(tf.mul(m!, beta1), tf.mul(grad, 1 - beta1))),
      slots: { m: tf.add(tf.mul(m!, beta2), tf.mul(grad, 1 - beta2)) },
    };
  }
}

/** The same, of gradients whose norm is 1 for each variable. */
class NormalizedLion extends Lion {
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
  const { step, read } = await bench(values, learnerOf(Lion.config(fields)));
  const expected = values.a.map((p) => ({ p, m: 0 }));
  for (let t = 0; t < 3; t++) {
    const grads = { a: noise(10 + t, 16), b: noise(20 + t, 16) };
    const { gradScale } = await step(t, grads);
    expect(gradScale).toBeLessThan(1);
    for (const [i, state] of expected.entries()) {
      const g = grads.a[i]! * gradScale;
      state.p -= 0.1 * (0.5 * state.p + Math.sign(0.9 * state.m + 0.1 * g));
      state.m = 0.99 * state.m + 0.01 * g;
    }
  }
  for (const [i, value] of read('a').entries()) expect(value).toBeCloseTo(expected[i]!.p, 6);
  for (const [i, value] of read('a', 'm').entries()) expect(value).toBeCloseTo(expected[i]!.m, 6);
  expect(read('a', 'ema')).not.toEqual(read('a'));
});

test('gradient transforms compose: each sees what the one before gives', async () => {
  const optimizer = NormalizedLion.config({ learningRate: 0.1, clipGradientNormToValue: 1 });
  const { step, read } = await bench({ a: [0, 0], b: [0] }, learnerOf(optimizer));
  const report = await step(0, { a: [30, 40], b: [0.5] });
  expect(report.rawGradNorm).toBeCloseTo(Math.hypot(50, 0.5), 4);
  expect(report.clippedGradNorm).toBeCloseTo(1, 6);
  const scale = 0.01 / Math.SQRT2;
  for (const [i, value] of [0.6, 0.8].entries()) expect(read('a', 'm')[i]).toBeCloseTo(scale * value, 7);
  expect(read('b', 'm')[0]).toBeCloseTo(scale, 7);
});

/** Adagrad (Duchi et al., 2011): squared gradients add up on top of an initial value. */
class Adagrad extends BaseOptimizer {
  initialSlots(): Record<string, number> {
    return { sum: 0.1 };
  }

  protected direction(grad: Tensor, { sum }: NamedTensors): Direction {
    const next = tf.add(sum!, tf.square(grad));
    return { direction: tf.div(grad, tf.sqrt(next)), slots: { sum: next } };
  }
}

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
