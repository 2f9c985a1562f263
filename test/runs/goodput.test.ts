/** @file The wall time of runs by use: over kills and restarts it sums to that of a clock outside. */
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readGoodput, shareOf, WallTime } from '../../src/runs/goodput.js';
import { JobError } from '../../src/runs/jobErrors.js';
import { goodputMetrics } from '../../src/runs/metricValues.js';
import { readRun } from '../../src/runs/runSummary.js';
import { runCommand, startCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines } from '../programs/runs.js';

/** goodput.jsonl with these lines, of processes that started so many seconds after the first. */
function recorded(lines: readonly (readonly [start: number, from: number, step: number, seconds: object])[]) {
  const directory = temporaryDirectory();
  const texts = lines.map(([start, from, step, seconds]) =>
    JSON.stringify({ process: 1_000_000 + 1000 * start, from, step, seconds }),
  );
  writeFileSync(join(directory, 'goodput.jsonl'), texts.map((text) => `${text}\n`).join(''));
  return directory;
}

/** The uses that took time. */
const usesOf = (directory: string) => {
  const { seconds, ...rest } = readGoodput(directory);
  return { ...rest, seconds: Object.fromEntries(Object.entries(seconds).filter(([, each]) => each !== 0)) };
};

test('steps after the checkpoint that a restart goes on from are lost; between processes nothing runs', () => {
  const killed = [
    [0, 0, 0, { start: 2 }],
    [0, 0, 4, { start: 2, step: 4, save_stall: 0.5 }],
    [0, 0, 7, { start: 2, step: 7.5, save_stall: 0.5, input_wait: 1 }],
  ] as const;
  expect(usesOf(recorded(killed))).toEqual({
    ...{ processes: 1, step: 7 },
    seconds: { start: 2, step: 7.5, save_stall: 0.5, input_wait: 1 },
  });
  const again = [
    ...killed,
    [20, 4, 4, { start: 1, restore: 1 }],
    [20, 4, 9, { start: 1, restore: 1, step: 5 }],
  ] as const;
  const directory = recorded(again);
  expect(usesOf(directory)).toEqual({
    ...{ processes: 2, step: 9 },
    seconds: { start: 3, restore: 1, step: 9, lost_steps: 3.5, save_stall: 0.5, input_wait: 1, idle: 9 },
  });
  expect(shareOf(readGoodput(directory))).toBeCloseTo(9 / 27);
  expect(goodputMetrics(directory)).toContainEqual({
    metric: 'run/goodput/lost_steps_sec',
    step: 9,
    value: 3.5,
  });
  // A third process goes back to before both.
  expect(usesOf(recorded([...again, [30, 0, 1, { step: 1 }]])).seconds).toMatchObject({
    step: 1,
    lost_steps: 16.5 - 4,
  });
});

test('a torn line and those of something else are left out', () => {
  const directory = recorded([[0, 0, 2, { step: 2 }]]);
  const path = join(directory, 'goodput.jsonl');
  writeFileSync(
    path,
    `{"process":5}\nnull\n${JSON.stringify({ process: 1, from: 0, step: 2, seconds: { step: 2 } })}\n{"process":1,"from`,
  );
  expect(usesOf(directory)).toEqual({ processes: 1, step: 2, seconds: { step: 2 } });
  writeFileSync(path, '');
  expect(usesOf(directory)).toEqual({ processes: 0, step: 0, seconds: {} });
  expect(goodputMetrics(temporaryDirectory())).toEqual([]);
  mkdirSync(join(directory, 'other/goodput.jsonl'), { recursive: true });
  expect(() => readGoodput(join(directory, 'other'))).toThrow(/goodput\.jsonl/);
});

test('something else in the place of the record ends the run with one line', () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'goodput.jsonl');
  mkdirSync(path);
  expect(() => new WallTime().begin(directory, 0)).toThrow(
    new JobError(
      `${path}: the run's time cannot be recorded here: ${path} is not a regular file but a directory.`,
    ),
  );
});

longTest('a run that is killed and goes on accounts for all its time', async () => {
  const directory = temporaryDirectory();
  const flags = (steps: number) => [
    ...['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--mode=train'],
    ...['--set', `numTrainSteps=${steps}`, '--set', 'task.train.saveIntervalSteps=1000000'],
  ];
  const began = Date.now();
  const killed = startCommand(flags(1_000_000));
  const path = join(directory, 'goodput.jsonl');
  while (!existsSync(path) || readGoodput(directory).step === 0) {
    expect(killed.child.exitCode).toBe(null);
    await sleep(20);
  }
  killed.child.kill('SIGKILL');
  await killed.finished;
  const { code, stderr } = await runCommand(flags(20));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const goodput = readGoodput(directory);
  expect(goodput).toMatchObject({ processes: 2, step: 20 });
  expect(goodput.seconds.lost_steps).toBeGreaterThan(0);
  const sum = Object.values(goodput.seconds).reduce((total, each) => total + each, 0);
  const seconds = (statSync(path).mtimeMs - began) / 1000;
  // The system takes a moment to start the first process.
  expect(Math.abs(sum - seconds), `${sum} of ${seconds} s`).toBeLessThan(0.01 * seconds + 0.1);
  const lastTrain = metricLines(directory).findLast(({ program }) => program === 'train')!;
  expect(lastTrain['goodput/lost_steps_sec']).toBeCloseTo(goodput.seconds.lost_steps);
  const { metrics } = await readRun(directory);
  expect(metrics.get('run/goodput/share')?.last).toEqual({ step: 20, value: shareOf(goodput) });
});
