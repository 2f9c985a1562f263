/** @file Throughput of training: one figure on the console and in metrics.jsonl, without the first step and pauses. */
import { afterEach, expect, test, vi } from 'vitest';
import { meterState, TrainMeter } from '../../src/programs/trainMeter.js';

afterEach(() => void vi.restoreAllMocks());

/** A report of a step. */
const report = {
  loss: 1,
  metrics: {},
  summaries: {},
  images: {},
  update: { learningRate: 1, rawGradNorm: 1, clippedGradNorm: 1, gradScale: 1, isValidStep: 1 },
} as unknown as Parameters<TrainMeter['add']>[0];

test('throughput is in units of the data: since the last summary, then of it, and the mean of the run', () => {
  let seconds = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => seconds * 1000);
  const meter = new TrainMeter({ count: 8, unit: 'images' });
  let waited = 0;
  const step = (took: number, steps = 1, wait = 0) => {
    seconds += took;
    waited += wait;
    meter.lap(steps, waited);
    for (let i = 0; i < steps; i++) meter.add(report, 1);
  };
  step(100, 1, 70);
  expect([meter.throughput, meter.meanThroughput, meter.mfu]).toEqual([undefined, undefined, undefined]);
  expect(Object.keys(meter.take(report)).filter((name) => /sec|mfu|wait/.test(name))).toEqual([]);

  step(1, 2, 0.5);
  expect(meter.inputWait).toBe(0.5);
  expect(meter.throughput).toEqual({ unit: 'images', perSec: 16 });
  expect(meter.mfu).toBeUndefined();
  meter.cost = { flops: 3, productFlops: 2, visibleFlops: 1.5, peak: { flops: 12, source: 'given' } };
  step(3, 2, 0.5);
  expect([meter.throughput?.perSec, meter.mfu]).toEqual([8, 0.25]);
  meter.pause();
  seconds += 50;
  expect(meter.take(report)).toMatchObject({
    'Steps/sec': 1,
    // Two steps of 0.5 s, two of 1.5 s.
    step_sec_deviation: 0.5,
    images_per_sec: 8,
    mfu: 0.25,
    mfu_palm: 0.25 * (2 / 3),
    mfu_causal: 0.125,
    input_wait: 0.25,
  });
  expect([meter.throughput?.perSec, meter.mfu]).toEqual([8, 0.25]);
  meter.resume();

  step(2);
  expect(meter.inputWait).toBe(0);
  expect([meter.throughput?.perSec, meter.mfu]).toEqual([4, 0.125]);
  expect(meter.meanThroughput).toEqual({ unit: 'images', perSec: (8 * 5) / 6 });
});

test('each summary has the means of its own steps; invalid steps in a row are counted anew after a valid one', () => {
  const meter = new TrainMeter({ count: 8, unit: 'images' });
  const of = (loss: number, accuracy: number, weight: number, isValidStep: 0 | 1): typeof report => ({
    ...report,
    loss,
    metrics: { accuracy: { value: accuracy, weight } },
    update: { ...report.update, isValidStep },
  });
  const told: unknown[] = [];
  for (const steps of [
    [of(1, 0.5, 1, 1), of(3, 1, 3, 0), of(5, 0, 1, 0)],
    [of(7, 0.25, 2, 1), of(8, 0.25, 2, 0)],
    [of(2, 0, 1, 0)],
  ]) {
    for (const step of steps) meter.add(step, 1);
    const { loss, ...scalars } = meter.take(steps.at(-1)!);
    told.push([loss, scalars['Metrics/accuracy'], scalars['Metrics/accuracy-weight']]);
    told.push([meter.lastLoss, meter.skipped, scalars['learning/skipped_steps'], meter.invalidInARow]);
  }
  expect(told).toEqual([
    ...[
      [3, 0.7, 5],
      [5, 2, 2, 2],
    ],
    ...[
      [7.5, 0.25, 4],
      [8, 3, 3, 1],
    ],
    ...[
      [2, 0, 1],
      [2, 4, 4, 2],
    ],
  ]);
});

test('examples left out are counted over all of a run, and are no part of the state where there are none', () => {
  const meter = new TrainMeter({ count: 8, unit: 'images' });
  meter.add(report, 1);
  expect([meter.state(), meter.take(report)]).toEqual([
    expect.not.objectContaining({ skippedExamples: expect.anything() }),
    expect.not.objectContaining({ skipped: expect.anything() }),
  ]);
  meter.addSkipped({ count: 4, first: ['a', 'b', 'c', 'd'] });
  meter.addSkipped({ count: 7, first: ['e', 'f', 'g', 'h', 'i'] });
  const later = new TrainMeter({ count: 8, unit: 'images' });
  later.restore(meterState.parse(JSON.parse(JSON.stringify(meter.state()))));
  later.addSkipped({ count: 1, first: ['j'] });
  later.add(report, 1);
  expect(later.take(report).skipped).toBe(12);
  expect(later.skippedExamples.first).toEqual(['a', 'b', 'c', 'd', 'e']);
});
