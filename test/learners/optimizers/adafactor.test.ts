/** @file Adafactor against plain loops in double precision; the size of its state; slices, storage of its momentum. */
import { describe, expect, test } from 'vitest';
import type { Engine } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { Adafactor, Adam, Learner, slotBytes } from '../../../src/learners/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { bench, learnerOf, noise } from '../fixtures.js';

interface Settings {
  learningRate: number;
  decayMethod?: 'adam' | 'pow';
  beta1?: number;
  nesterov?: boolean;
  quantizedDtype?: 'int8' | 'float32';
  clippingThreshold?: number;
  multiplyByParameterScale?: boolean;
  decoupledWeightDecay?: number;
  weightDecay?: number;
  layerwiseAdaptation?: boolean;
}

const rms = (x: readonly number[]) => Math.sqrt(x.reduce((sum, u) => sum + u * u, 0) / x.length);

/**
 * praxis's ShardedAdafactor for one variable, its tensors as [batch, rows, columns]; a vector is not factored.
 *
 * @param first size of the first dimension, over which an int8 has one scale.
 */
function reference(
  start: readonly number[],
  grads: readonly (readonly number[])[],
  dims: number[] | null,
  first: number,
  o: Settings,
) {
  const p = [...start];
  const [batch, rows, columns] = dims ?? [1, 1, p.length];
  const at = (b: number, r: number, c: number) => (b * rows! + r) * columns! + c;
  const vr = new Array<number>(batch! * rows!).fill(0);
  const vc = new Array<number>(batch! * columns!).fill(0);
  const v = p.map(() => 0);
  let m = p.map(() => 0);
  for (const [step, g] of grads.entries()) {
    const t = step + 1;
    const d = o.decayMethod === 'pow' ? 1 - t ** -0.8 : (0.99 * (1 - 0.99 ** (t - 1))) / (1 - 0.99 ** t);
    const s = g.map((each) => each * each + 1e-30);
    let x = g.map(() => 0);
    if (dims === null) {
      for (const i of p.keys()) {
        v[i] = d * v[i]! + (1 - d) * s[i]!;
        x[i] = g[i]! / Math.sqrt(v[i]!);
      }
    } else {
      for (let b = 0; b < batch!; b++) {
        for (let r = 0; r < rows!; r++) {
          let mean = 0;
          for (let c = 0; c < columns!; c++) mean += s[at(b, r, c)]! / columns!;
          vr[b * rows! + r] = d * vr[b * rows! + r]! + (1 - d) * mean;
        }
        for (let c = 0; c < columns!; c++) {
          let mean = 0;
          for (let r = 0; r < rows!; r++) mean += s[at(b, r, c)]! / rows!;
          vc[b * columns! + c] = d * vc[b * columns! + c]! + (1 - d) * mean;
        }
        let mean = 0;
        for (let r = 0; r < rows!; r++) mean += vr[b * rows! + r]! / rows!;
        for (let r = 0; r < rows!; r++)
          for (let c = 0; c < columns!; c++)
            x[at(b, r, c)] =
              g[at(b, r, c)]! / Math.sqrt(vr[b * rows! + r]! / mean) / Math.sqrt(vc[b * columns! + c]!);
      }
    }
    const threshold = o.clippingThreshold ?? 1;
    const clip = threshold > 0 ? Math.max(1, rms(x) / threshold) : 1;
    const scale = o.learningRate * (o.multiplyByParameterScale ? Math.max(rms(p), 1e-3) : 1);
    x = x.map((each) => (scale * each) / clip);
    const beta = o.beta1 ?? 0;
    let moved = x;
    if (beta > 0) {
      const mean = m.map((old, i) => beta * old + (1 - beta) * x[i]!);
      moved = o.nesterov ? mean.map((each, i) => beta * each + (1 - beta) * x[i]!) : mean;
      m = mean;
      if (o.quantizedDtype !== 'float32') {
        const width = mean.length / first;
        const bucket = Array.from(
          { length: width },
          (_, c) =>
            Math.max(...Array.from({ length: first }, (_, r) => Math.abs(mean[r * width + c]!))) / 127,
        );
        m = mean.map((each, i) => Math.round(each / (bucket[i % width]! || 1)) * bucket[i % width]!);
      }
    }
    moved = moved.map((each, i) => each + o.learningRate * (o.weightDecay ?? 0) * p[i]!);
    if (o.layerwiseAdaptation) {
      const ratio = rms(p) / (rms(moved.map((each) => each / scale)) + 1e-30);
      moved = moved.map((each) => each * ratio);
    }
    const keep = 1 - o.learningRate * (o.decoupledWeightDecay ?? 0);
    for (const i of p.keys()) p[i] = p[i]! * keep - moved[i]!;
  }
  return { p, vr, vc, v, m };
}

const engines: Engine[] = ['onnx', ...(hasCompiler ? ['native' as const] : [])];
const STEPS = 4;

describe.each(engines)('Adafactor on %s', (engine) => {
  test.each<[string, Settings]>([
    ['without momentum', { learningRate: 0.1 }],
    ['decay by a power, unclipped', { learningRate: 0.1, decayMethod: 'pow', clippingThreshold: 0 }],
    [
      'relative to the parameters',
      { learningRate: 0.1, multiplyByParameterScale: true, clippingThreshold: 0.5 },
    ],
    [
      'momentum in float32',
      { learningRate: 0.1, beta1: 0.9, quantizedDtype: 'float32', decoupledWeightDecay: 0.1 },
    ],
    [
      'in proportion to the parameters, with weight decay',
      {
        ...{ learningRate: 0.1, multiplyByParameterScale: true },
        weightDecay: 0.3,
        layerwiseAdaptation: true,
      },
    ],
    ["momentum in int8, Nesterov's", { learningRate: 0.1, beta1: 0.8, nesterov: true }],
  ])('is that of plain loops: %s', async (_name, settings) => {
    const shapes = { matrix: [4, 6], stacked: [2, 3, 4], kernel: [2, 3, 4], vector: [7], scalar: [] };
    const size = { matrix: 24, stacked: 24, kernel: 24, vector: 7, scalar: 1 };
    const of = (seed: number) =>
      Object.fromEntries(
        Object.entries(size).map(([name, count], i) => [name, noise(seed + i, count).map(Math.fround)]),
      );
    const start = of(1);
    const grads = Array.from({ length: STEPS }, (_, t) => of(100 + 10 * t));
    const { step, read } = await bench(
      start,
      learnerOf(Adafactor.config({ ...settings, minDimSizeToFactor: 3 })),
      { engine, shapes, repeatPrefix: { stacked: [2] } },
    );
    for (const [t, values] of grads.entries()) await step(t, values);
    const expected = (
      name: string,
      dims: number[] | null,
      first: number,
      part: (x: readonly number[]) => readonly number[] = (x) => x,
    ) =>
      reference(
        part(start[name]!),
        grads.map((each) => part(each[name]!)),
        dims,
        first,
        settings,
      );
    const near = (found: readonly number[], wanted: readonly number[]) => {
      expect(found.length).toBe(wanted.length);
      found.forEach((value, i) => {
        expect(Math.abs(value - wanted[i]!)).toBeLessThanOrEqual(3e-6 * Math.max(1, Math.abs(wanted[i]!)));
      });
    };
    const matrix = expected('matrix', [1, 4, 6], 4);
    near(read('matrix'), matrix.p);
    near(read('matrix', 'vr'), matrix.vr);
    near(read('matrix', 'vc'), matrix.vc);
    near(read('kernel'), expected('kernel', [2, 3, 4], 2).p);
    // Each of the stacked matrices is updated by itself.
    const slices = [0, 1].map((i) => expected('stacked', [1, 3, 4], 3, (x) => x.slice(12 * i, 12 * i + 12)));
    near(
      read('stacked'),
      slices.flatMap(({ p }) => p),
    );
    near(
      read('stacked', 'vr'),
      slices.flatMap(({ vr }) => vr),
    );
    const vector = expected('vector', null, 7);
    near(read('vector'), vector.p);
    near(read('vector', 'v'), vector.v);
    near(read('scalar'), expected('scalar', null, 1, (x) => x).p);
    if (settings.beta1 === undefined) return;
    if (settings.quantizedDtype === 'float32') near(read('matrix', 'm'), matrix.m);
    else {
      const scale = read('matrix', 'mScale');
      near(
        read('matrix', 'mInt8').map((q, i) => q * scale[i % 6]!),
        matrix.m,
      );
      near(
        read('stacked', 'mInt8').map((q, i) => q * read('stacked', 'mScale')[(i < 12 ? 0 : 4) + (i % 4)]!),
        slices.flatMap(({ m }) => m),
      );
    }
  });

  test('steps that are not valid keep every bit of the state, int8 too; zero gradients are no 0 / 0', async () => {
    const optimizer = Adafactor.config({ learningRate: 0.1, beta1: 0.9, minDimSizeToFactor: 2 });
    const { step, slots, params } = await bench({ w: noise(1, 9), b: noise(2, 3) }, learnerOf(optimizer), {
      engine,
      shapes: { w: [3, 3] },
    });
    await step(0, { w: noise(3, 9), b: noise(4, 3) });
    const bits = () => [params, ...Object.values(slots)].map(({ buffer }) => [...new Uint8Array(buffer)]);
    const before = bits();
    expect((await step(1, { w: noise(3, 9), b: [0, Number.NaN, 0] })).isValidStep).toBe(0);
    expect(bits()).toEqual(before);
    for (let t = 2; t < 5; t++) await step(t, { w: new Array(9).fill(0), b: [0, 0, 0] });
    expect([...params, ...Object.values(slots).flatMap((slot) => [...slot])].every(Number.isFinite)).toBe(
      true,
    );
  });
});

test('which variables are factored, and the shapes of their slots', () => {
  const slots = (shape: number[], values = {}) =>
    build(Adafactor.config({ learningRate: 1, minDimSizeToFactor: 4, ...values })).slotSpecs({
      path: 'w',
      shape,
    });
  const squares = { fill: 0, values: 'squares' };
  expect(slots([4, 6])).toEqual({ vr: { shape: [4] }, vc: { shape: [6] } });
  expect(slots([3, 6])).toEqual({ v: { shape: [3, 6], ...squares } });
  expect(slots([8, 4, 6])).toEqual({ vr: { shape: [8, 4] }, vc: { shape: [8, 6] } });
  expect(slots([8, 3, 6])).toEqual({ v: { shape: [8, 3, 6], ...squares } });
  expect(slots([8, 3, 6], { sortFactoredSecondMomentDims: true })).toEqual({
    vr: { shape: [3, 6] },
    vc: { shape: [8, 3] },
  });
  expect(slots([4, 6], { factored: false, beta1: 0.9 })).toEqual({
    v: { shape: [4, 6], ...squares },
    mInt8: { shape: [4, 6], dtype: 'int8' },
    mScale: { shape: [6] },
  });
  expect(slots([], { beta1: 0.9 })).toEqual({
    v: { shape: [], ...squares },
    m: { shape: [], fill: 0, values: 'signed' },
  });
  expect(() => Adafactor.config({ learningRate: 1, epsilon1GradSqReg: 1e-50 })).not.toThrow();
  expect(() => build(Adafactor.config({ learningRate: 1, epsilon1GradSqReg: 1e-50 }))).toThrow(
    '(Adafactor): epsilon1GradSqReg must be above 0 in float32',
  );
});

test('the two largest dimensions are factored where they are asked for', async () => {
  const settings = { learningRate: 0.1 };
  const [start, grads] = [noise(1, 24).map(Math.fround), [noise(2, 24).map(Math.fround)]];
  // [4, 2, 3] with rows of 3 and columns of 4: the same as [2, 3, 4] with its axes in this order.
  const moved = (x: readonly number[]) =>
    Array.from({ length: 24 }, (_, i) => x[(i % 4) * 6 + Math.floor(i / 4)]!);
  const { step, read } = await bench(
    { w: start },
    learnerOf(Adafactor.config({ ...settings, minDimSizeToFactor: 2, sortFactoredSecondMomentDims: true })),
    { shapes: { w: [4, 2, 3] } },
  );
  await step(0, { w: grads[0]! });
  const { p } = reference(moved(start), grads.map(moved), [2, 3, 4], 4, settings);
  for (const [i, value] of moved(read('w')).entries()) expect(value).toBeCloseTo(p[i]!, 5);
});

/** Parameters after three steps in double precision, as optax 0.2.8 moves them. */
test.each([
  [
    'optax.adafactor',
    { quantizedDtype: 'float32' as const },
    [
      -0.11004958385981715, 1.0985176321154106, 1.0559378432388293, -0.08779398141244685, -0.9264247846369363,
      -0.8001525006187704, -0.08105274645788639, 0.5214637607724429, 0.7730927464611772, 0.4613952685198158,
      -0.3090026584099514, -1.0323954769346055,
    ],
    [0.2, -0.7, 1.7],
  ],
  [
    'optax.adafactor with momentum, relative to the parameters',
    { quantizedDtype: 'float32' as const, beta1: 0.9, decayPow: 0.6, multiplyByParameterScale: true },
    [
      -0.024763581514826848, 0.8658790139401307, 0.9379765654015357, 0.12174621241373695, -0.7869969453388866,
      -0.9520390622473309, -0.24673576326171295, 0.6533095835447459, 0.9560126089992729, 0.4011608837940236,
      -0.5097916078826342, -0.9878334154440558,
    ],
    [0.4263441056296605, -0.9263441056296606, 1.9263441056296606],
  ],
])('%s', async (_name, settings, matrix, vector) => {
  const config = { learningRate: 0.1, decayMethod: 'pow', minDimSizeToFactor: 2, ...settings } as const;
  const start = { m: Array.from({ length: 12 }, (_, i) => Math.sin(i)), v: [0.5, -1, 2] };
  const { step, read } = await bench(start, learnerOf(Adafactor.config(config)), { shapes: { m: [3, 4] } });
  for (let t = 0; t < 3; t++)
    await step(t, {
      m: start.m.map((_, i) => Math.cos(1.5 * i + t)),
      v: [0.1, -2, 0.3].map((g) => g * (t + 1)),
    });
  for (const [i, value] of read('m').entries()) expect(value).toBeCloseTo(matrix[i]!, 5);
  for (const [i, value] of read('v').entries()) expect(value).toBeCloseTo(vector[i]!, 5);
});

test('of a matrix of 4,096 x 4,096, its slots take less than 2 % of Adam’s', () => {
  const bytes = (learner: Learner) =>
    slotBytes(learner.slotLayouts(learner.layout([{ path: 'w', shape: [4096, 4096] }])));
  const [adafactor, quantized, adam] = [
    Adafactor.config({ learningRate: 1 }),
    Adafactor.config({ learningRate: 1, beta1: 0.9 }),
    Adam.config({ learningRate: 1 }),
  ].map((optimizer) => bytes(build(Learner.config({ optimizer }))));
  expect(adam).toBe(2 * 4 * 4096 ** 2);
  expect(adafactor).toBe(2 * 4 * 4096);
  expect(adafactor! / adam!).toBeLessThan(0.02);
  expect(quantized).toBe(4096 ** 2 + 3 * 4 * 4096);
});
