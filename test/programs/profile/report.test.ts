/** @file Tables and trace of a profile, from runs that are told by hand. */
import { expect, test } from 'vitest';
import { type Part, Profiler } from '../../../src/compiler/index.js';
import { type Limits, profileText, workByKind, workByLayer } from '../../../src/programs/profile/report.js';
import { traceJson } from '../../../src/programs/profile/trace.js';

const part = (
  kind: Part['kind'],
  label: string,
  shares: Record<string, number>,
  flops = 0,
  bytes = 0,
): Part => ({
  kind,
  label,
  shares: Object.entries(shares).map(([scope, share]) => ({ scope, share })),
  flops,
  bytes,
});

const product = part('product', '2x2 by 2x2', { 'lm/x_10/linear': 1 }, 6e6, 1e6);
const loop = part('loop', 'Exp', { 'lm/x_10/linear': 0.25, 'grad lm/x_9': 0.5, '': 0.25 }, 0, 4e6);

/** Two runs on two threads: 4 ms a run inside of 5, of which the second thread waits 1. */
function profiled(): Profiler {
  const profiler = new Profiler();
  const profile = profiler.open('train_step', 'native', 'bfloat16', 2, [[product], [loop]]);
  const spans = Float64Array.from(
    [
      [0, 0, 0, 1, 1.003],
      [0, 1, -1, 1.003, 1.003],
      [0, 1, 0, 1.003, 1.004],
      [1, 0, 0, 1, 1.002],
      [1, 1, -1, 1.002, 1.003],
      [1, 1, 0, 1.003, 1.004],
    ].flat(),
  );
  for (let run = 0; run < 2; run++) profile.add(0.005, 1, spans);
  profiler.open('never', 'native', 'float32', 2, []);
  profiler.open('update', 'onnx', 'float32').add(0.002, 2);
  profiler.phases.set('input', 0.001);
  profiler.phases.set('gradients', 0.01);
  return profiler;
}

const limits: Limits = { flops: 4e9, flopsSource: 'measured', bytes: 8e9 };
const course = { steps: 2, seconds: 0.02 };

test('the tables say all, and add up', () => {
  expect(profileText(profiled(), course, limits)).toBe(`\
peak 4 GFLOP/s (measured), memory 8.0 GB/s (read by all threads)

phase      seconds  ms a step     %
gradients    0.010      5.000  50.0
input        0.001      0.500   5.0
the rest     0.009      4.500  45.0

train_step: 2 runs of 5.000 ms, on native, bfloat16, 2 threads

work                          ms  % of run  forward  backward  GFLOP/s  % of peak  GB/s  % of memory
matrix products            2.500      50.0    2.500                2.4       60.0   0.4          5.0
fused loops                1.000      20.0    0.500     0.500                       4.0         50.0
waiting for other threads  0.500      10.0
calling and returning      1.000      20.0

layer          ms  % of run  forward  backward  GFLOP/s  % of peak  GB/s  % of memory
(no layer)  0.250       5.0    0.250                                 4.0         50.0
lm          3.250      65.0    2.750     0.500      1.8       46.2   1.2         15.4
  x_9       0.500      10.0              0.500                       4.0         50.0
  x_10      2.750      55.0    2.750                2.2       54.5   0.7          9.1
    linear  2.750      55.0    2.750                2.2       54.5   0.7          9.1

update: 2 runs of 1.000 ms, on onnx, float32
`);
});

test('a layer has the time of the layers in it, and each share counts once', () => {
  const [profile] = profiled().programs;
  const total = (rows: Iterable<{ forward: number; backward: number }>) =>
    [...rows].reduce((sum, { forward, backward }) => sum + forward + backward, 0);
  const layers = workByLayer(profile!);
  expect([...layers.keys()].sort()).toEqual(['', 'lm', 'lm/x_10', 'lm/x_10/linear', 'lm/x_9']);
  const atTheTop = [layers.get('')!, layers.get('lm')!];
  expect(total(atTheTop)).toBeCloseTo(total(workByKind(profile!).values()), 12);
  expect(layers.get('lm')!.flops).toBeCloseTo(6e6);
});

test('the console omits fast layers; unknown values stay empty', () => {
  const text = profileText(
    profiled(),
    { steps: 0, seconds: 0.02 },
    { flops: null, flopsSource: '', bytes: null },
    2,
  );
  expect(text.startsWith('phase ')).toBe(true);
  expect(text).toContain('… and 3 more in profile.txt');
  expect(text).toMatch(/^ {2}x_10 +2\.750 +55\.0 +2\.750 +2\.2 +0\.7$/m);
  expect(text).toMatch(/^gradients +0\.010 +50\.0$/m);
});

test('a job of which nothing ran has no tables', () => {
  expect(
    profileText(new Profiler(), { steps: 0, seconds: 1 }, { flops: null, flopsSource: '', bytes: null }),
  ).toBe('\n\n');
});

test('the trace has every span of the last run, on its thread, under its layer', () => {
  const { traceEvents, displayTimeUnit } = JSON.parse(traceJson(profiled()));
  expect(displayTimeUnit).toBe('ms');
  const names = traceEvents.filter(({ ph }: { ph: string }) => ph === 'M');
  expect(names.map(({ name, pid, tid, args }: any) => [name, pid, tid, args.name])).toEqual([
    ['process_name', 1, 0, 'train_step'],
    ['thread_name', 1, 0, 'thread 0'],
    ['thread_name', 1, 1, 'thread 1'],
  ]);
  const spans = traceEvents.filter(({ ph }: { ph: string }) => ph === 'X');
  expect(
    spans.slice(3).map(({ name, cat, tid, ts, dur, args }: any) => [name, cat, tid, ts, dur, args?.what]),
  ).toEqual([
    ['lm/x_10/linear', 'product', 1, 0, 2000, '2x2 by 2x2'],
    ['waiting', 'waiting', 1, 2000, 1000, undefined],
    ['lm/x_9 (gradient)', 'loop', 1, 3000, 1000, 'Exp'],
  ]);
});

test('a trace of nothing is one, too', () => {
  expect(JSON.parse(traceJson(new Profiler()))).toEqual({ displayTimeUnit: 'ms', traceEvents: [] });
});
