/** @file Random bands of spectra and random shifts of signals. */
import '@tensorflow/tfjs-backend-cpu';
import { describe, expect, test } from 'vitest';
import { compile, type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type ConfigValues } from '../../../src/hparams/index.js';
import { runInContext, SpectrumAugmenter, TemporalShifting } from '../../../src/layers/index.js';
import { engines } from '../../compiler/engines.js';
import { given } from '../engineComparison.js';
import { ints, run } from '../helpers.js';

const keyOf = (seed: number): Tensor => ints([seed, 6], [2]);

/** Where outputs for spectra of ones are 0, by row: bands of time and bands of frequency. */
function hiddenBy(values: Partial<ConfigValues<SpectrumAugmenter>>, lengths: readonly number[]) {
  const [time, bins] = [50, 12];
  const layer = build(SpectrumAugmenter.config(values as object));
  const paddings = tf.tensor2d(
    lengths.map((length) => Array.from({ length: time }, (_, t) => (t < length ? 0 : 1))),
  );
  const x = tf.ones([lengths.length, time, bins]);
  const rows = run({}, () => layer.fprop(x, paddings), { prngKey: keyOf(1) }).arraySync() as number[][][];
  const places = (size: number, isHidden: (i: number) => boolean) =>
    Array.from({ length: size }, (_, i) => i).filter(isHidden);
  return rows.map((row) => ({
    frames: places(time, (t) => row[t]!.every((value) => value === 0)),
    bins: places(bins, (f) => row.every((frame) => frame[f] === 0)),
    values: new Set(row.flat()),
  }));
}
const noFrequency = { freqMaskCount: 0 };
const noTime = { timeMaskCount: 0 };
/** As many rows of one length: each draws for itself. */
const rowsOf = (length: number, count = 60): number[] => new Array(count).fill(length);

describe('SpectrumAugmenter', () => {
  test('hides one band of time, of each length and at each place that fits', () => {
    const ratio = { ...noFrequency, timeMaskCount: 1, timeMaskMaxRatio: 0.2 };
    const all = hiddenBy(ratio, [...rowsOf(50), ...rowsOf(20)]);
    for (const [i, { frames, bins, values }] of all.entries()) {
      const length = i < 60 ? 50 : 20;
      expect(bins).toEqual([]);
      expect([...values].every((value) => value === 0 || value === 1)).toBe(true);
      expect(frames.length).toBeLessThan(0.2 * length);
      frames.forEach((t, j) => {
        expect(t).toBe(frames[0]! + j);
        expect(t).toBeLessThan(length);
      });
    }
    const short = all.slice(60).map(({ frames }) => frames);
    // Of a length drawn evenly from [0, 4), the whole part.
    expect([...new Set(short.map(({ length }) => length))].sort()).toEqual([0, 1, 2, 3]);
    const places = new Set(short.filter(({ length }) => length === 1).map(([t]) => t));
    expect(places.size).toBeGreaterThan(10);
  });

  test('bounds bands of time by frames where told, and by the share of the frames', () => {
    const fixed = {
      ...noFrequency,
      useDynamicTimeMaskMaxFrames: false,
      timeMaskMaxFrames: 30,
      timeMaskCount: 1,
    };
    const lengths = hiddenBy({ ...fixed, timeMaskMaxRatio: 0.2 }, rowsOf(50)).map(
      ({ frames }) => frames.length,
    );
    expect(Math.max(...lengths)).toBe(10);
  });

  test('has as many bands of time as a sequence has frames for', () => {
    const perFrame = { ...noFrequency, timeMaskMaxRatio: 0.02, timeMaskCount: 20, timeMasksPerFrame: 0.1 };
    // Bands of one frame at most: the fixed bound of frames is reached by nearly each draw.
    const one = { ...perFrame, useDynamicTimeMaskMaxFrames: false, timeMaskMaxFrames: 1000 };
    const [long, short] = [50, 20].map((length) =>
      hiddenBy(one, rowsOf(length)).map(({ frames }) => frames.length),
    );
    expect(Math.max(...long!)).toBe(5);
    expect(Math.max(...short!)).toBe(2);
  });

  test('hides bands of frequency', () => {
    const all = hiddenBy({ ...noTime, freqMaskCount: 1, freqMaskMaxBins: 5 }, rowsOf(50));
    for (const { frames, bins } of all) {
      expect(frames).toEqual([]);
      bins.forEach((f, j) => {
        expect(f).toBe(bins[0]! + j);
      });
    }
    expect([...new Set(all.map(({ bins }) => bins.length))].sort()).toEqual([0, 1, 2, 3, 4]);
    const two = hiddenBy({ ...noTime, freqMaskMaxBins: 5 }, rowsOf(50));
    expect(Math.max(...two.map(({ bins }) => bins.length))).toBeGreaterThan(5);
  });

  test('does nothing in evaluation unless told', () => {
    const x = tf.ones([2, 20, 4]);
    const outputsOf = (augmentAtEval: boolean) => {
      const layer = build(SpectrumAugmenter.config({ augmentAtEval }));
      return run({}, () => layer.fprop(x), { doEval: true, ...(augmentAtEval && { prngKey: keyOf(3) }) });
    };
    expect(outputsOf(false)).toBe(x);
    expect(tf.min(outputsOf(true)).dataSync()[0]).toBe(0);
  });

  test('refuses other shapes', () => {
    const layer = build(SpectrumAugmenter.config());
    expect(() => run({}, () => layer.fprop(tf.ones([2, 20])))).toThrow(
      /^model \(SpectrumAugmenter\): expected spectra \[B, T, F\], got \[2, 20\]\.$/,
    );
    expect(() => run({}, () => layer.fprop(tf.ones([2, 20, 4]), tf.ones([2, 19])))).toThrow(
      /^model \(SpectrumAugmenter\): paddings \[2, 19\] do not fit the inputs: expected \[2, 20\], or 1 in place of a size\.$/,
    );
  });
});

/** Shifts by up to 2 samples. */
const shifting = (values: object = {}) =>
  build(TemporalShifting.config({ shiftRangeMs: 2, sampleRate: 1000, ...values }));

describe('TemporalShifting', () => {
  test('moves each signal and its padding by a number of its own', () => {
    const layer = shifting();
    const signal = [1, 2, 3, 4, 5];
    const x = tf.tensor2d(Array.from({ length: 40 }, () => signal));
    const paddings = tf.tensor2d(Array.from({ length: 40 }, () => [0, 0, 0, 0, 1]));
    const shifted = run({}, () => layer.fprop(x, paddings), { prngKey: keyOf(2) });
    const [features, marks] = [shifted.features.arraySync(), shifted.paddings!.arraySync()] as [
      number[][],
      number[][],
    ];
    const drawn = features.map((row, i) => {
      const shift = row[2]! - 3;
      expect(row).toEqual(signal.map((_, t) => signal[t + shift] ?? 0));
      expect(marks[i]).toEqual(signal.map((_, t) => [0, 0, 0, 0, 1][t + shift] ?? 1));
      return shift;
    });
    expect([...new Set(drawn)].sort((a, b) => a - b)).toEqual([-2, -1, 0, 1, 2]);
  });

  test('moves along any axis but the first', () => {
    const x = tf.reshape(tf.range(1, 61), [2, 3, 5, 2]);
    const options = { prngKey: keyOf(4) };
    const inFront = run({}, () => shifting().fprop(tf.transpose(x, [0, 2, 1, 3])).features, options);
    const inside = run({}, () => shifting({ axis: 2 }).fprop(x).features, options);
    expect(inside.arraySync()).toEqual(tf.transpose(inFront, [0, 2, 1, 3]).arraySync());
    expect(inside.arraySync()).not.toEqual(x.arraySync());
  });

  test('does nothing in evaluation', () => {
    const x = tf.ones([2, 5]);
    expect(run({}, () => shifting().fprop(x), { doEval: true }).features).toBe(x);
  });

  test('refuses shifts as long as the signal, and an axis that there is not', () => {
    const x = tf.ones([2, 2]);
    expect(() => run({}, () => shifting().fprop(x))).toThrow(
      /^model \(TemporalShifting\): shiftRangeMs 2 is 2 samples: expected fewer than the 2 of the signals\.$/,
    );
    expect(() => run({}, () => shifting({ axis: 2 }).fprop(x))).toThrow(
      /^model \(TemporalShifting\): axis 2: the features \[2, 2\] have no such axis\.$/,
    );
  });
});

test.each(engines.filter(([, { available }]) => available))('draw the same on %s', async (_, { engine }) => {
  const augmenter = build(SpectrumAugmenter.config({ timeMasksPerFrame: 0.3, timeMaskMaxRatio: 0.4 }));
  const layer = shifting();
  const program = ({ x, key }: Readonly<Record<string, Tensor>>) =>
    runInContext({ theta: {}, prngKey: key! }, () => {
      const { features } = layer.fprop(x!);
      return { augmented: augmenter.fprop(x!), features };
    });
  const args = {
    x: given(
      'float32',
      Array.from({ length: 120 }, (_, i) => i + 1),
      [2, 15, 4],
    ),
    key: given('int32', [5, 6], [2]),
  };
  const outputs = [];
  for (const which of ['eager', engine] as const) {
    const executable = await compile(program as never, args as never, { engine: which, numThreads: 1 });
    outputs.push(await executable.run(args as never));
    await executable.dispose();
  }
  expect(outputs[1]).toEqual(outputs[0]);
});
