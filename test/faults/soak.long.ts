/**
 * @file Training that is killed, stopped, out of disk space and given a clock that jumps, for minutes, while its checkpoints are
 * evaluated: five of them here, SOAK_MINUTES=30 as a soak, less than one with SHORT=1.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from '../command.js';
import { draw, isShort, seed, title } from './campaign.js';
import { canInject, faultEnv } from './preload.js';
import { checkMetrics, checkTrajectory, lastStep, newest } from './trajectory.js';

const minutes = Number(process.env.SOAK_MINUTES ?? (isShort ? 0.4 : 5));

const flags = (numTrainSteps: number): string[] => [
  '--exp=tiny.Tiny',
  ...['--set', `numTrainSteps=${numTrainSteps}`],
  ...['--set', 'task.train.evalIntervalSteps=1000000', '--set', 'task.train.saveMaxToKeep=1'],
  ...['--engine=onnx', '--num_threads=1'],
];

/** A part of the soak: training on a machine with these faults, until it is ended. */
interface Phase {
  readonly end: 'SIGKILL' | 'SIGTERM';
  /** Milliseconds of training. */
  readonly length: number;
  /** The first write to a checkpoint that finds the disk full, and how many do; 0: none. */
  readonly full: number;
  readonly times: number;
  readonly clockSeed: number;
}
const phase: fc.Arbitrary<Phase> = fc.record({
  end: fc.constantFrom('SIGKILL', 'SIGKILL', 'SIGTERM'),
  length: fc.integer({ min: 0, max: 3000 }),
  full: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60 })),
  times: fc.integer({ min: 1, max: 200 }),
  clockSeed: fc.integer({ min: 0, max: 1 << 20 }),
});

/** Runs a phase. @returns whether the run got to train */
async function run({ end, length, full, times, clockSeed }: Phase, directory: string): Promise<boolean> {
  const logs = temporaryDirectory();
  const fault = {
    calls: ['write', 'fsync', 'create'],
    part: 'checkpoints',
    nth: full,
    times,
    how: 'ENOSPC',
  } as const;
  const env = {
    ...(canInject && full > 0 ? faultEnv(logs, directory, fault, join(logs, 'calls')) : {}),
    NODE_OPTIONS: `--import ${new URL('clock.mjs', import.meta.url)}`,
    CLOCK_SEED: String(clockSeed),
  };
  const before = lastStep(directory);
  const training = startCommand(
    [...flags(1_000_000), `--job_log_dir=${directory}`],
    undefined,
    undefined,
    env,
  );
  const { child, finished } = training;
  while (lastStep(directory) === before && child.exitCode === null) await sleep(20);
  await Promise.race([sleep(length), finished]);
  child.kill(end);
  const { code, stderr } = await finished;
  // A full disk may end it; else only what was sent to it does.
  if (full === 0) expect([null, 143], stderr).toContain(code);
  return lastStep(directory) > before;
}

/** Evaluates the newest checkpoint, over and over. @returns how often */
async function evaluate(directory: string, isOver: () => boolean): Promise<number> {
  while (newest(directory) < 0 && !isOver()) await sleep(50);
  let count = 0;
  for (; !isOver(); count++) {
    const job = [
      ...['--mode=eval', '--exp=tiny.Tiny', `--job_log_dir=${directory}`],
      ...['--engine=onnx', '--num_threads=1'],
    ];
    const { code, stderr } = await startCommand(job).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }
  return count;
}

test(
  title(`${minutes} minutes of kills, full disks, a jumping clock and evaluations`),
  async () => {
    const directory = temporaryDirectory();
    const deadline = performance.now() + minutes * 60_000;
    const isOver = () => performance.now() > deadline;
    const evaluating = evaluate(directory, isOver);
    let phases = 0;
    for (let saved = -1; !isOver(); phases++) {
      const [each] = draw(phase, 1, seed + phases);
      await run(each!, directory);
      expect(newest(directory), JSON.stringify(each)).toBeGreaterThanOrEqual(saved);
      saved = newest(directory);
    }
    const evaluations = await evaluating;
    console.log(`soak: ${phases} phases, ${evaluations} evaluations, ${lastStep(directory)} steps`);
    await checkTrajectory(directory, flags);
    checkMetrics(directory);
  },
  (minutes + 5) * 60_000,
);
