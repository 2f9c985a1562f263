/** @file Schedules: values at steps as Pax has them, nanoGPT's learning rate, what bad fields get. */
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseSchedule,
  ByTokens,
  Constant,
  ContinuousSchedule,
  Cosine,
  CycleSchedule,
  DecayBranch,
  DelayedCosine,
  Exponential,
  InversePower,
  Linear,
  LinearRampupCosineDecay,
  LinearRampupExponentialDecay,
  LinearRampupPiecewiseConstant,
  LinearRampupPolynomialDecay,
  LinearRampupSqrtDecay,
  PiecewiseConstant,
  PiecewiseSchedule,
  Polynomial,
  SqrtDecay,
  Transformer,
} from '../../../src/learners/index.js';

const cases: [string, () => Config<BaseSchedule>, [step: number, value: number][]][] = [
  [
    'Constant',
    () => Constant.config({ value: 3 }),
    [
      [0, 3],
      [1e6, 3],
    ],
  ],
  [
    'Linear',
    () => Linear.config({ start: [100, 0.1], limit: [200, 1] }),
    [
      [0, 0.1],
      [100, 0.1],
      [120, 0.28],
      [150, 0.55],
      [200, 1],
      [250, 1],
    ],
  ],
  [
    'Polynomial, flat at its start',
    () => Polynomial.config({ start: [100, 0], limit: [200, 1], power: 2 }),
    [
      [50, 0],
      [150, 0.25],
      [200, 1],
    ],
  ],
  [
    'Polynomial, flat at its limit',
    () => Polynomial.config({ start: [100, 0], limit: [200, 1], power: 2, origin: 'limit' }),
    [
      [50, 0],
      [150, 0.75],
      [200, 1],
    ],
  ],
  [
    'Exponential',
    () => Exponential.config({ start: [100, 1], limit: [200, 0.1] }),
    [
      [0, 1],
      [100, 1],
      [120, 0.630957],
      [150, 0.316228],
      [200, 0.1],
      [250, 0.1],
    ],
  ],
  [
    'Cosine',
    () => Cosine.config({ finalValue: 0.5, totalSteps: 400 }),
    [
      [0, 1],
      [100, 0.926777],
      [200, 0.75],
      [400, 0.5],
      [800, 0.5],
    ],
  ],
  [
    'DelayedCosine',
    () => DelayedCosine.config({ start: [100, 1], limit: [200, 0] }),
    [
      [50, 1],
      [100, 1],
      [150, 0.5],
      [200, 0],
      [201, 0],
    ],
  ],
  [
    'LinearRampupSqrtDecay',
    () => LinearRampupSqrtDecay.config({ peak: 2, warmupSteps: 100 }),
    [
      [0, 0.02],
      [10, 0.2],
      [100, 2],
      [200, Math.SQRT2],
      [1000, 0.632456],
    ],
  ],
  [
    'CycleSchedule',
    () =>
      CycleSchedule.config({
        schedules: [Constant.config({ value: 1 }), Constant.config({ value: 2 })],
        steps: [3, 2],
      }),
    [1, 1, 1, 2, 2, 1, 1, 1].map((value, step) => [step, value]),
  ],
  [
    'CycleSchedule, whose schedules see the step of the whole',
    () =>
      CycleSchedule.config({ schedules: [Linear.config({ start: [0, 0], limit: [100, 1] })], steps: [10] }),
    [
      [5, 0.05],
      [25, 0.25],
    ],
  ],
  [
    'ContinuousSchedule',
    () => ContinuousSchedule.config(),
    [
      [0, 1],
      [400_000, 1],
      [500_000, 0.5],
      [600_000, 0.25],
      [1e7, 0.01],
    ],
  ],
  [
    'InversePower',
    () => InversePower.config({ warmupSteps: 10, timescale: 30 }),
    [
      [0, 0],
      [5, 0.5],
      [10, 1],
      [100, 0.5],
    ],
  ],
  [
    'InversePower with a tail',
    () => InversePower.config({ power: 1, timescale: 100, tailStart: 100, tailEnd: 200 }),
    [
      [0, 1],
      [100, 0.5],
      [150, 0.25],
      [200, 0],
      [999, 0],
    ],
  ],
  ...(
    [
      ['linear', 0.75],
      ['cosine', 0.5 + 0.5 * Math.SQRT1_2],
      ['sqrt', 0.5],
    ] as const
  ).map(([form, quarter]): [string, () => Config<BaseSchedule>, [number, number][]] => [
    `DecayBranch, ${form}`,
    () =>
      DecayBranch.config({
        schedule: Linear.config({ start: [0, 0], limit: [200, 2] }),
        startStep: 100,
        endStep: 140,
        form,
        minRatio: 0,
      }),
    [
      [50, 0.5],
      [100, 1],
      [110, quarter],
      [140, 0],
      [500, 0],
    ],
  ]),
  [
    'ByTokens',
    () =>
      ByTokens.config({
        schedule: Linear.config({ start: [0, 0], limit: [1000, 1] }),
        phases: [
          { fromStep: 0, tokensPerStep: 10 },
          { fromStep: 20, tokensPerStep: 20 },
          { fromStep: 30, tokensPerStep: 100 },
        ],
      }),
    [
      [0, 0],
      [7, 0.07],
      [20, 0.2],
      [21, 0.22],
      [30, 0.4],
      [35, 0.9],
      [36, 1],
      [900, 1],
    ],
  ],
  [
    'LinearRampupCosineDecay',
    () =>
      LinearRampupCosineDecay.config({
        warmupSteps: 10,
        decayStart: 20,
        decayEnd: 40,
        minRatio: 0.1,
        max: 2,
      }),
    [
      [0, 0],
      [5, 1],
      [10, 2],
      [15, 2],
      [20, 2],
      [30, 1.1],
      [40, 0.2],
      [99, 0.2],
    ],
  ],
  [
    'LinearRampupCosineDecay with a start step',
    () =>
      LinearRampupCosineDecay.config({
        startStep: 100,
        warmupSteps: 10,
        decayStart: 10,
        decayEnd: 30,
        max: 2,
      }),
    [
      [0, 1],
      [99, 1],
      [100, 0],
      [105, 1],
      [110, 2],
      [130, 0.02],
    ],
  ],
  [
    'LinearRampupPolynomialDecay',
    () =>
      LinearRampupPolynomialDecay.config({
        warmupSteps: 10,
        decayStart: 10,
        decayEnd: 30,
        minRatio: 0.5,
        max: 2,
      }),
    [
      [5, 1],
      [10, 2],
      [20, 1.5],
      [30, 1],
      [40, 1],
    ],
  ],
  [
    'LinearRampupExponentialDecay',
    () =>
      LinearRampupExponentialDecay.config({
        warmupSteps: 10,
        decayStart: 11,
        decayEnd: 31,
        minRatio: 0.01,
        max: 1,
      }),
    [
      [5, 0.5],
      [10, 1],
      [11, 1],
      [21, 0.1],
      [31, 0.01],
      [40, 0.01],
    ],
  ],
  [
    'LinearRampupPiecewiseConstant',
    () => LinearRampupPiecewiseConstant.config({ boundaries: [40, 60, 80], values: [1, 0.1, 0.01] }),
    [
      [0, 0],
      [20, 0.5],
      [40, 1],
      [59, 1],
      [60, 0.1],
      [80, 0.01],
      [1000, 0.01],
    ],
  ],
  [
    'PiecewiseConstant',
    () => PiecewiseConstant.config({ boundaries: [3, 5], values: [10, 20, 30] }),
    [
      [0, 10],
      [2, 10],
      [3, 20],
      [4, 20],
      [5, 30],
      [99, 30],
    ],
  ],
  [
    'Transformer',
    () => Transformer.config({ warmupSteps: 4000, modelDim: 512 }),
    [
      [0, 512 ** -0.5 * 4000 ** -1.5],
      [3999, 512 ** -0.5 * 4000 ** -0.5],
      [15999, 512 ** -0.5 * 16000 ** -0.5],
    ],
  ],
  [
    'Transformer with replicas, to the end of its decay',
    () => Transformer.config({ warmupSteps: 2, modelDim: 4, workerReplicas: 8, decayEnd: 35 }),
    [
      [0, 0.5 / 64],
      [14, (0.5 * 15) / 64],
      [15, 0.5 / 4],
      [16, 0.5 / Math.sqrt(17)],
      [34, 0.5 / Math.sqrt(35)],
      [35, 0.5 / 6],
      [36, 0.5 / 6],
      [1e9, 0.5 / 6],
    ],
  ],
  [
    'SqrtDecay with an offset',
    () => SqrtDecay.config({ decayStart: 100, offset: 300 }),
    [
      [0, 0.1],
      [400, 0.1],
      [401, 1 / Math.sqrt(101)],
      [1200, 1 / 30],
    ],
  ],
  [
    'LinearRampupPolynomialDecay of power 2, without a warm-up',
    () => LinearRampupPolynomialDecay.config({ decayStart: 4, decayEnd: 8, minRatio: 0, power: 2 }),
    [
      [0, 1],
      [4, 1],
      [6, 0.75],
      [7, 0.4375],
      [8, 0],
    ],
  ],
  [
    'LinearRampupCosineDecay that is over where it begins',
    () => LinearRampupCosineDecay.config({ warmupSteps: 3, decayStart: 3, decayEnd: 3, minRatio: 0 }),
    [
      [2, 2 / 3],
      [3, 0],
    ],
  ],
  [
    'LinearRampupCosineDecay that moves at its first step',
    () =>
      LinearRampupCosineDecay.config({ warmupSteps: 1, decayStart: 2, decayEnd: 4, rampupFromZero: false }),
    [
      [0, 0.5],
      [1, 1],
      [3, 0.505],
    ],
  ],
  [
    'PiecewiseConstant with an interval of no steps, and one from step 0',
    () => PiecewiseConstant.config({ boundaries: [0, 3, 3], values: [10, 20, 30, 40] }),
    [
      [0, 20],
      [2, 20],
      [3, 40],
    ],
  ],
  [
    'PiecewiseConstant without boundaries',
    () => PiecewiseConstant.config({ boundaries: [], values: [5] }),
    [[0, 5]],
  ],
  [
    'SqrtDecay',
    () => SqrtDecay.config({ decayStart: 100, multiplier: 2 }),
    [
      [0, 0.2],
      [100, 0.2],
      [400, 0.1],
    ],
  ],
];

test.each(cases)('%s', (_name, config, values) => {
  const schedule = build(config());
  for (const [step, value] of values) expect(schedule.valueAt(step)).toBeCloseTo(value, 6);
});

test('PiecewiseSchedule passes the steps since its boundary', () => {
  const second = Exponential.config({ start: [0, 1], limit: [100, 0.1] });
  const schedule = build(
    PiecewiseSchedule.config({
      boundaries: [50, 60],
      schedules: [Linear.config({ start: [0, 0], limit: [100, 1] }), second, second],
    }),
  );
  expect([0, 49].map((step) => schedule.valueAt(step))).toEqual([0, 0.49]);
  const from = (boundary: number, step: number) => [
    schedule.valueAt(boundary + step),
    build(second).valueAt(step),
  ];
  for (const step of [0, 9]) expect(from(50, step)[0]).toBe(from(50, step)[1]);
  for (const step of [0, 10, 100, 500]) expect(from(60, step)[0]).toBe(from(60, step)[1]);
});

/** nanoGPT's train.py, `get_lr`; `newer` is its warm-up since 2024. */
function nanoGptLr(it: number, newer: boolean): number {
  const [learningRate, warmupIters, lrDecayIters, minLr] = [1e-3, 100, 2000, 1e-4];
  if (it < warmupIters)
    return newer ? (learningRate * (it + 1)) / (warmupIters + 1) : (learningRate * it) / warmupIters;
  if (it > lrDecayIters) return minLr;
  const coefficient = 0.5 * (1 + Math.cos((Math.PI * (it - warmupIters)) / (lrDecayIters - warmupIters)));
  return minLr + coefficient * (learningRate - minLr);
}

test.each([true, false])(
  "LinearRampupCosineDecay expresses nanoGPT's learning rate (newer warm-up: %s)",
  (newer) => {
    const schedule = build(
      LinearRampupCosineDecay.config({
        warmupSteps: 100,
        decayStart: 100,
        decayEnd: 2000,
        minRatio: 0.1,
        rampupFromZero: !newer,
      }),
    );
    for (let it = 0; it < 2100; it++) {
      expect(Math.abs(1e-3 * schedule.valueAt(it) - nanoGptLr(it, newer))).toBeLessThan(1e-17);
    }
  },
);

test.each([
  [
    () => Linear.config({ start: [200, 1], limit: [100, 0] }),
    'start (Linear): x0 of start must be below x1 of limit; start is [200, 1] (at test/learners/',
  ],
  [
    () => Exponential.config({ start: [0, 1], limit: [10, 0] }),
    'limit[1] (Exponential): y1 of limit must be above 0; limit[1] is 0 (at test/learners/',
  ],
  [
    () => PiecewiseConstant.config({ boundaries: [1, 2], values: [1, 2] }),
    'PiecewiseConstant: The number of values (2) is expected to be equal to the number of boundaries plus 1 (3).',
  ],
  [
    () => PiecewiseConstant.config({ boundaries: [2, 1], values: [1, 2, 3] }),
    'PiecewiseConstant: The boundaries ([2, 1]) must be sorted.',
  ],
  [
    () => PiecewiseSchedule.config({ boundaries: [2], schedules: [Constant.config()] }),
    'PiecewiseSchedule: len(schedules) != len(boundaries) + 1: 1 vs 1',
  ],
  [
    () => PiecewiseSchedule.config({ boundaries: [2, 1], schedules: [1, 2, 3].map(() => Constant.config()) }),
    'PiecewiseSchedule: The boundaries ([2, 1]) must be sorted.',
  ],
  [
    () => CycleSchedule.config({ schedules: [Constant.config()], steps: [1, 2] }),
    'CycleSchedule: len(schedules) != len(steps): 1 vs 2',
  ],
  [
    () => DecayBranch.config({ startStep: 10, endStep: 10 }),
    'endStep (DecayBranch): endStep must be above startStep; startStep is 10',
  ],
  [
    () => ByTokens.config({ phases: [{ fromStep: 1, tokensPerStep: 10 }] }),
    'expected the first phase from step 0 on',
  ],
  [
    () => InversePower.config({ tailStart: 10 }),
    'tailEnd (InversePower): tailStart and tailEnd must be given together; tailStart is 10',
  ],
  [
    () => InversePower.config({ warmupSteps: 20, tailStart: 10, tailEnd: 30 }),
    'tailStart (InversePower): tailStart must not be below warmupSteps; warmupSteps is 20',
  ],
  [
    () => LinearRampupPiecewiseConstant.config({ boundaries: [], values: [] }),
    'The number of values (0) is expected to be equal to the number of boundaries (0), at least 1.',
  ],
  [
    () => LinearRampupPiecewiseConstant.config({ boundaries: [1, 2], values: [1] }),
    'The number of values (1) is expected to be equal to the number of boundaries (2), at least 1.',
  ],
  [
    () => LinearRampupPiecewiseConstant.config({ boundaries: [3, 2], values: [1, 2] }),
    'LinearRampupPiecewiseConstant: The boundaries ([3, 2]) must be sorted.',
  ],
  [
    () => Linear.config({ start: [100, 1], limit: [100, 0] }),
    'start (Linear): x0 of start must be below x1 of limit; start is [100, 1]',
  ],
  [
    () => Exponential.config({ start: [0, 0] }),
    'start[1] (Exponential): y0 of start must be above 0; start[1] is 0',
  ],
  [
    () => DelayedCosine.config({ start: [0, 0] }),
    'start[1] (DelayedCosine): y0 of start must be above 0; start[1] is 0',
  ],
  [
    () => DelayedCosine.config({ limit: [1, -1] }),
    'limit[1] (DelayedCosine): y1 of limit must not be below 0; limit[1] is -1',
  ],
  [
    () => DelayedCosine.config({ start: [1, 1] }),
    'start (DelayedCosine): x0 of start must be below x1 of limit; start is [1, 1]',
  ],
  [
    () => LinearRampupExponentialDecay.config({ minRatio: 0 }),
    'LinearRampupExponentialDecay: 0 must be > 0 (minRatio)',
  ],
  [
    () => LinearRampupPolynomialDecay.config({ warmupSteps: 5, decayEnd: 10, max: 1 }),
    'LinearRampupPolynomialDecay: decayStart (0) must be greater than or equal to warmupSteps (5).',
  ],
  [
    () => LinearRampupExponentialDecay.config({ decayStart: 5, max: 1 }),
    'LinearRampupExponentialDecay: decayEnd (0) must be greater than or equal to decayStart (5).',
  ],
] as [() => Config<BaseSchedule>, string][])('bad fields are named: %s', (config, message) => {
  expect(() => build(config())).toThrow(message);
});

test('a warm-up ends at 1 unless max is set, which must be positive', () => {
  const fields = { warmupSteps: 2, decayStart: 2, decayEnd: 4 };
  expect(build(LinearRampupCosineDecay.config(fields)).valueAt(2)).toBe(1);
  expect(build(LinearRampupCosineDecay.config({ ...fields, max: 3 })).valueAt(2)).toBe(3);
  expect(() => LinearRampupCosineDecay.config({ ...fields, max: 0 })).toThrow(
    'LinearRampupCosineDecay.max: expected a positive number, got 0',
  );
});
