/** @file The moving average of the parameters, from training to evaluation and decoding, by the command. */
import { expect, test } from 'vitest';
import { oneProcess } from '../command.js';
import { metricLines, wholeRun } from './runs.js';

// What passes from one command to the next is in files.
const run = oneProcess('src/main.ts');

const decay = 'task.train.learner.optimizer.emaDecay=0.9';
const flags = (directory: string, ...more: string[]): string[] => [
  ...['--exp=Tiny', `--job_log_dir=${directory}`, '--set', 'numTrainSteps=6'],
  ...more,
];

/** The newest evaluation in a run's metrics. */
const evaluated = (directory: string) =>
  metricLines(directory).findLast((line) => line.program === 'eval_test_validation')!['Metrics/log_pplx'];

test('evaluation in training and of checkpoints uses the average if configured', async () => {
  const averaged = ['--set', decay, '--set', 'task.train.evalUseEmaStates=true'];
  const directory = await wholeRun((own) => flags(own, '--mode=train_and_eval', ...averaged), run);
  const average = evaluated(directory);
  const evaluate = async (...more: string[]) => {
    const { code, stderr } = await run(flags(directory, '--mode=eval', '--set', decay, ...more));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return evaluated(directory);
  };
  expect(await evaluate('--set', 'task.train.evalUseEmaStates=true')).toBe(average);
  expect(average).toBeGreaterThan(0);
  expect(await evaluate()).not.toBe(average);
});

test('a run without an average has none to evaluate', async () => {
  const directory = await wholeRun((own) => flags(own, '--mode=train'), run);
  const asked = flags(directory, '--mode=eval', '--set', decay, '--set', 'task.train.evalUseEmaStates=true');
  const { code, stderr } = await run(asked);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `${directory}/checkpoints/checkpoint_00000006: not compatible with this model, 1 difference:\n` +
      "  optimizer slot 'ema' is only in the model\n" +
      'Use another --job_log_dir, or the settings that the checkpoint was trained with.\n',
  );
});
