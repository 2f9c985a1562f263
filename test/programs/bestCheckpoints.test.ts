/** @file Checkpoints that are best by metrics: asked for where a value ranks, kept across restarts. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listCheckpoints } from '../../src/checkpoints/directory.js';
import { build, type Config } from '../../src/hparams/index.js';
import type { BaseInput } from '../../src/inputs/index.js';
import { BestCheckpoints } from '../../src/programs/bestCheckpoints.js';
import { restoreStates } from '../../src/programs/jobPrograms.js';
import { runLoop } from '../../src/programs/loop.js';
import { type Program, type ProgramRun, SaveBest, type SingleTask } from '../../src/tasks/index.js';
import { longTest } from '../longTest.js';
import { metricLines } from './runs.js';
import { openJob, tinyOptions, tokens } from './tinyJob.js';

const evaluation = { name: 'eval_test_x', isDue: (step: number) => step % 2 === 0 } as unknown as Program;
const lowest = SaveBest.config({ evaluation: 'eval_test_x', metric: 'loss', keep: 2 });
const highest = SaveBest.config({ evaluation: 'eval_test_x', metric: 'score', mode: 'max' });

/** The program of a task with both policies. */
const following = (mode: 'train' | 'train_and_eval' = 'train_and_eval', programs = [evaluation]) => {
  const checkpointPolicies = [lowest, highest].map((policy) => build(policy));
  const task = { hp: { train: { hp: { checkpointPolicies } } } } as unknown as SingleTask;
  return new BestCheckpoints({ mode }, task, programs);
};

/** Runs it at a step with these metrics. @returns whether it asks for a checkpoint */
async function asks(program: BestCheckpoints, step: number, loss: number, score: number, at = step) {
  let asked = false;
  const metrics = { loss: { value: loss, weight: 1 }, score: { value: score, weight: 1 } };
  await program.run({
    step,
    metrics: () => metrics,
    metricsStep: () => at,
    save: () => {
      asked = true;
    },
  } as unknown as ProgramRun);
  return asked;
}

test('a checkpoint is asked for where one of the metrics is among its best', async () => {
  const program = following();
  expect([1, 2].map((step) => program.isDue(step, false))).toEqual([false, true]);
  expect(await asks(program, 2, 5, 1)).toBe(true);
  expect(await asks(program, 4, 6, 1)).toBe(true);
  // Equal to the best score, and third by loss: the earlier one stays the best.
  expect(await asks(program, 6, 7, 1)).toBe(false);
  expect(await asks(program, 8, 9, 2)).toBe(true);
  expect(await asks(program, 10, Number.NaN, Number.NaN)).toBe(false);
  // The evaluation of this step failed.
  expect(await asks(program, 12, 0, 9, 10)).toBe(false);
  expect([...program.metrics.keys()]).toEqual([2, 4, 8]);
});

test('a run that resumes compares with the values of before', async () => {
  const program = following();
  for (const [step, loss] of [3, 1, 2].entries()) await asks(program, step, loss, 0);
  const resumed = following();
  resumed.setState(JSON.parse(JSON.stringify(program.getState())));
  expect(resumed.metrics).toEqual(program.metrics);
  expect(await asks(resumed, 4, 2, 0)).toBe(false);
  expect(await asks(resumed, 5, 1.5, 0)).toBe(true);
});

test('an evaluation or metric that is not there is named; training without evaluations follows none', async () => {
  expect(() => following('train_and_eval', [])).toThrow(
    "task.train.checkpointPolicies[0].evaluation: this run has no 'eval_test_x'. Its programs: none.",
  );
  const alone = following('train', []);
  expect([alone.isDue(2, true), alone.getState()]).toEqual([false, undefined]);
  const run = { step: 2, metricsStep: () => 2, metrics: () => ({ lossy: {} }) };
  await expect(following().run(run as unknown as ProgramRun)).rejects.toThrow(
    "task.train.checkpointPolicies[0].metric: 'eval_test_x' has no 'loss'. Did you mean 'lossy'? It has: lossy.",
  );
});

longTest(
  'the best checkpoints of a run stay beside the newest, also where it was stopped in between',
  async () => {
    const best = SaveBest.config({ evaluation: 'eval_test_x', metric: 'total_loss', mode: 'max', keep: 2 });
    const train = {
      saveIntervalSteps: 100,
      saveMaxToKeep: 1,
      evalIntervalSteps: 1,
      checkpointPolicies: [best],
    };
    const options = tinyOptions({ ...train, numTrainSteps: 3 }, { mode: 'train_and_eval' });
    const datasets = [...options.datasets, tokens('x', { numBatches: 2, inputRandomSeed: 5 })];
    for (const numTrainSteps of [3, 6]) {
      const { jobLogDir } = options;
      const more = tinyOptions({ ...train, numTrainSteps }, { jobLogDir, mode: 'train_and_eval' });
      const { loop, list, start } = await openJob({ ...more, datasets: datasets as Config<BaseInput>[] });
      restoreStates(list, start.restored?.progress ?? { positions: {} });
      await runLoop(loop);
    }
    const values = metricLines(options.jobLogDir)
      .filter(({ program }) => program === 'eval_test_x')
      .map((line): [number, number] => [Number(line.step), Number(line['Metrics/total_loss'])]);
    const ranked = new Map(values.sort(([, a], [, b]) => b - a));
    const wanted = new Set([...[...ranked.keys()].slice(0, 2), 6]);
    const left = [...listCheckpoints(join(options.jobLogDir, 'checkpoints')).keys()];
    expect(left).toEqual([...wanted].sort((a, b) => a - b));
  },
);
