/** @file EarlyStopProgram in a job: when it is asked, under which keys, and how training ends. */
import { expect, test } from 'vitest';
import { runLoop } from '../../src/programs/loop.js';
import { BaseEarlyStoppingFn, type StoppingInputs } from '../../src/tasks/index.js';
import { openJob, tinyOptions, tokens } from './tinyJob.js';

const asked: StoppingInputs[] = [];

/** Stops at the second evaluation. */
class StopAtThree extends BaseEarlyStoppingFn {
  override shouldStop(inputs: StoppingInputs): string | false {
    asked.push(inputs);
    return inputs.step === 3 && 'three steps are enough.';
  }
}

test('it is asked where metrics are new, and ends training with the evaluations of a last step', async () => {
  const options = tinyOptions({ evalSkipTrain: false, summaryIntervalSteps: 3 }, { mode: 'train_and_eval' });
  options.task.earlyStoppingFn = StopAtThree.config();
  const datasets = [...options.datasets, tokens('held_out', { numBatches: 1 })];
  const { loop, run, lines } = await openJob({ ...options, datasets });
  await runLoop(loop);
  expect(run.step).toBe(3);
  expect(run.ended).toBe('three steps are enough.');
  expect(asked.map(({ step, runningMode, isLast }) => [step, runningMode, isLast])).toEqual([
    [2, 'eval_train_eval_test_held_out', false],
    [3, 'train', false],
  ]);
  const { metrics, fresh } = asked[1]!;
  expect(Object.keys(metrics)).toEqual(
    expect.arrayContaining([
      ...['train/loss', 'train/total_loss', 'eval_train/metrics/log_pplx'],
      ...['eval_test_held_out/metrics/log_pplx', 'num_params'],
    ]),
  );
  expect(metrics.num_params).toBe(
    Object.values(run.viewOf('x').params).reduce((sum, { length }) => sum + length, 0),
  );
  expect([...fresh].filter((key) => !key.startsWith('train/'))).toEqual([]);
  expect(run.newest.of('eval_test_held_out')?.step).toBe(3);
  expect(lines.join('\n')).not.toContain('failed');
});
