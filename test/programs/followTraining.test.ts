/** @file Evaluation beside training: checkpoints as they appear, what was interrupted, what is kept meanwhile. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Config } from '../../src/hparams/index.js';
import type { BaseInput } from '../../src/inputs/index.js';
import { nextCheckpoint } from '../../src/programs/followTraining.js';
import { runJob } from '../../src/programs/index.js';
import { JobProgress } from '../../src/programs/jobProgress.js';
import type { JobOptions } from '../../src/runs/options.js';
import { acquireLock } from '../../src/system/index.js';
import { BaseProgram, type ProgramRun } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines } from './runs.js';
import { tinyOptions, tokens } from './tinyJob.js';

const never = { received: undefined };

/** Evaluations in metrics.jsonl. */
const evaluated = (directory: string) =>
  metricLines(directory)
    .filter(({ program }) => String(program).startsWith('eval_test'))
    .map(({ program, step }) => [program, step]);

/** In training, waits at each step with a checkpoint until it was evaluated; in evaluation, notes the leases there are. */
class Beside extends BaseProgram.with({}) {
  static leases: string[] = [];

  override async run({ isTraining, directory, step }: ProgramRun) {
    if (!isTraining) {
      const names = readdirSync(join(directory, 'checkpoints')).filter((name) => name.startsWith('.lease_'));
      Beside.leases.push(...names.map((name) => name.split('.')[1]!));
      return undefined;
    }
    const before = step - 2;
    while (before >= 0 && !evaluated(directory).some(([, at]) => at === before)) await sleep(20);
    return undefined;
  }
}

/** Options of a training job and of its evaluation. */
function jobs(jobLogDir: string): { readonly train: JobOptions; readonly evaluation: JobOptions } {
  const programs = [Beside.config({ name: 'beside', intervalSteps: 2 } as never)];
  const train = tinyOptions({ programs: programs as never, saveMaxToKeep: 1 }, { jobLogDir });
  const datasets = [
    ...train.datasets,
    ...['a', 'b'].map((name) => tokens(name, { numBatches: 1 }) as Config<BaseInput>),
  ];
  return { train: { ...train, datasets }, evaluation: { ...train, datasets, mode: 'eval', waitSeconds: 60 } };
}

longTest(
  'an evaluation that starts first takes each checkpoint, keeps it meanwhile, and ends with training',
  async () => {
    const directory = join(temporaryDirectory(), 'run');
    const { train, evaluation } = jobs(directory);
    const evaluating = runJob(evaluation);
    await runJob(train);
    await evaluating;
    const both = (step: number) => [
      ['eval_test_a', step],
      ['eval_test_b', step],
    ];
    expect(evaluated(directory)).toEqual([...both(0), ...both(2), ...both(4)]);
    expect(Beside.leases.map((name) => Number(name.slice(-8)))).toEqual([0, 2, 4]);
    const artifacts = join(directory, '_internal_artifacts');
    expect(readdirSync(artifacts)).toEqual([]);
    expect(readdirSync(join(directory, 'checkpoints'))).toEqual(['checkpoint_00000004']);

    // A job that was interrupted with one dataset to go, and others whose record is of another state.
    const checkpoint = join(directory, 'checkpoints', 'checkpoint_00000004');
    const { savedAt } = JSON.parse(readFileSync(join(checkpoint, 'metadata.json'), 'utf8'));
    const again = async (record: { step: number; savedAt: string; pending: string[] }) => {
      const before = evaluated(directory).length;
      new JobProgress(evaluation).write(record);
      await runJob(evaluation);
      return evaluated(directory).slice(before);
    };
    expect(await again({ step: 4, savedAt, pending: ['eval_test_b'] })).toEqual([['eval_test_b', 4]]);
    expect(await again({ step: 4, savedAt: 'earlier', pending: ['eval_test_b'] })).toEqual(both(4));
    expect(await again({ step: 2, savedAt, pending: ['eval_test_b'] })).toEqual(both(4));
    expect(await again({ step: 4, savedAt, pending: [] })).toEqual([]);
    expect(new JobProgress(evaluation).interrupted()).toBeUndefined();
  },
);

test('a job waits for a checkpoint as long as a process trains, and then for as long as it is told', async () => {
  const jobLogDir = temporaryDirectory();
  const lock = await acquireLock(join(jobLogDir, '.train.lock'));
  const later = nextCheckpoint({ jobLogDir }, never, 100);
  mkdirSync(join(jobLogDir, 'checkpoints', 'checkpoint_00000100'), { recursive: true });
  await sleep(50);
  mkdirSync(join(jobLogDir, 'checkpoints', 'checkpoint_00000200'));
  expect(await later).toBe(200);
  const stop: { received: 'SIGTERM' | undefined } = { received: undefined };
  const stopped = nextCheckpoint({ jobLogDir }, stop, 200);
  stop.received = 'SIGTERM';
  expect(await stopped).toBeUndefined();
  lock.release();
  expect(await nextCheckpoint({ jobLogDir }, never, 200)).toBeUndefined();
  expect(await nextCheckpoint({ jobLogDir }, never, 100, 150)).toBe(200);
  const began = performance.now();
  expect(await nextCheckpoint({ jobLogDir, waitSeconds: 0.2 }, never, 200)).toBeUndefined();
  expect(performance.now() - began).toBeGreaterThan(190);
  const status = { state: 'finished', startedAt: new Date().toISOString(), secondsBefore: 0 };
  writeFileSync(join(jobLogDir, 'status.json'), JSON.stringify(status));
  expect(await nextCheckpoint({ jobLogDir, waitSeconds: 1000 }, never, 200)).toBeUndefined();
});
