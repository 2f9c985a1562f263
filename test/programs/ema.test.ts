/** @file The moving average of the parameters, from training to evaluation and decoding, by the command. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oneProcess } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines, tensorsAt, wholeRun } from './runs.js';

// What passes from one command to the next is in files.
const run = oneProcess('src/main.ts');
const luthier = oneProcess('src/tools/commandLine.ts');

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

longTest('an exported file has the parameters that were evaluated', async () => {
  const exported = async (...sets: string[]) => {
    const directory = await wholeRun(
      (own) => flags(own, '--mode=train', ...sets.flatMap((set) => ['--set', set])),
      run,
    );
    const { stdout } = await luthier(['export', directory]);
    const json = JSON.parse((await luthier(['export', directory, '--format=json'])).stdout);
    const model = readFileSync(join(directory, 'model_6.onnx'));
    const has = (tensor: string) =>
      model.includes(Buffer.from((tensorsAt(directory, 6)[tensor] as Float32Array).buffer));
    return {
      says: stdout.includes('\nweights: the moving average of the parameters, as evaluated\n'),
      isAveraged: json.isAveraged,
      has: [has('params/lm/softmax/w'), has('slots/ema/lm/softmax/w')],
    };
  };
  expect(await exported(decay, 'task.train.evalUseEmaStates=true')).toEqual({
    ...{ says: true, isAveraged: true, has: [false, true] },
  });
  expect(await exported(decay, 'task.train.decodeUseEmaStates=true')).toEqual({
    ...{ says: false, isAveraged: false, has: [true, false] },
  });
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

longTest('a resume may begin the average, from the parameters, or end it', async () => {
  const directory = await wholeRun((own) => flags(own, '--mode=train'), run);
  const resumed = async (steps: number, ...more: string[]) => {
    const { code, stdout, stderr } = await run([
      ...flags(directory, '--mode=train', '--set', `numTrainSteps=${steps}`),
      ...more,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  const begun = await resumed(7, '--set', decay);
  expect(begun).toContain(
    'The moving average of the parameters begins at this step: emaDecay has changed.\n',
  );
  const [before, after] = [6, 7].map((step) => tensorsAt(directory, step));
  const name = 'lm/softmax/w';
  const [from, to, ema] = [
    before![`params/${name}`] as Float32Array,
    after![`params/${name}`] as Float32Array,
    after![`slots/ema/${name}`] as Float32Array,
  ];
  // Step 7 moves the average from the old parameters to the new by 1 - min(0.9, (1 + 6) / (10 + 6)).
  for (const [i, value] of ema.entries())
    expect(value).toBeCloseTo(from[i]! + (9 / 16) * (to[i]! - from[i]!), 6);
  expect(before![`slots/ema/${name}`]).toBeUndefined();
  const ended = await resumed(8);
  expect(ended).toContain('The moving average of the parameters ends at this step: emaDecay has changed.\n');
  expect(tensorsAt(directory, 8)[`slots/ema/${name}`]).toBeUndefined();
});
