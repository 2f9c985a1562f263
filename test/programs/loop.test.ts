/** @file Programs of one's own in the training loop: when they run, what they tell, how they end training. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readRun } from '../../src/runs/runSummary.js';
import { oneProcess, project, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines, stateAt, untimedLines } from './runs.js';

const run = oneProcess('src/main.ts', fileURLToPath(new URL('../fixtures/faults', import.meta.url)));
const flagsOf = (experiment: string, directory: string, ...sets: readonly string[]) => [
  ...[`--exp=patient.${experiment}`, `--job_log_dir=${directory}`, '--mode=train_and_decode'],
  ...[`dataPath=${join(project, 'corpus/counting.txt')}`, 'numTrainSteps=12', ...sets].flatMap((set) => [
    '--set',
    set,
  ]),
];

const flags = (directory: string, ...sets: readonly string[]) => flagsOf('Patient', directory, ...sets);

const programsAt = (directory: string) =>
  untimedLines(directory).map(({ program, step }) => `${step} ${program}`);

const validation = ['eval_train', 'eval_test_validation', 'eval_test_rolling'];
const at = (step: number, ...programs: readonly string[]) => programs.map((program) => `${step} ${program}`);

longTest('early stopping: ends at the requested step, runs the final programs, and saves', async () => {
  const directory = temporaryDirectory();
  const { code, stdout, stderr } = await run(flags(directory));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(programsAt(directory)).toEqual([
    ...at(3, ...validation, 'early_stopping'),
    ...at(5, 'train'),
    ...at(6, ...validation, 'decode_test_validation', 'early_stopping'),
    ...at(9, ...validation, 'early_stopping', 'decode_test_validation'),
  ]);
  expect(stdout).toContain(
    'Training ends at step 9: eval_test_validation has not become better for 2 evaluations.\nTrained patient.Patient to step 9 at ',
  );
  expect(existsSync(join(directory, 'summaries/early_stopping'))).toBe(true);
  // A finished run that is started again tells its figures again, and nothing twice.
  const lines = untimedLines(directory);
  const again = await run(flags(directory));
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('Training ends at step 9: ') });
  expect(new Set(untimedLines(directory).map((line) => JSON.stringify(line)))).toEqual(
    new Set(lines.map((line) => JSON.stringify(line))),
  );
  expect(stateAt(directory, 9).length).toBeGreaterThan(0);
});

test('a resumed run restores its programs’ states', async () => {
  const directory = temporaryDirectory();
  expect((await run(flags(directory, 'datasets[0].failsAt=7'))).code).toBe(1);
  expect(await readRun(directory)).toMatchObject({
    ...{ state: 'failed', step: 7, reason: 'the shelf fell over' },
  });
  const { code, stdout } = await run(flags(directory));
  expect(await readRun(directory)).toMatchObject({
    ...{ state: 'finished', step: 9, reason: expect.stringContaining('has not become better'), problems: [] },
  });
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Training ends at step 9: '),
  });
});

test('a failing program is reported like an evaluation; equal names are rejected', async () => {
  const watching = 'task.train.programs[0].evaluation=eval_test_other';
  const { code, stdout } = await run(flags(temporaryDirectory(), watching));
  expect(code).toBe(0);
  expect(stdout).toContain('early_stopping at step 3 failed, training goes on: TypeError: ');
  const directory = temporaryDirectory();
  const named = await run(flags(directory, 'task.train.programs[0].name=eval_train'));
  expect(named).toMatchObject({
    code: 2,
    stderr: "Two programs are called 'eval_train': give each dataset and program its own name.\n",
  });
});

longTest(
  'a tracked metric: the best checkpoint outlives later ones, and training ends where it gets no better',
  async () => {
    const directory = temporaryDirectory();
    const tracked = flagsOf('Tracked', directory);
    const { code, stdout, stderr } = await run(tracked);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const values = metricLines(directory)
      .filter(({ program }) => program === 'eval_test_validation')
      .map((line) => line['Metrics/log_pplx'] as number);
    expect(values).toEqual(values.toSorted((a, b) => b - a));
    const reason = `eval_test_validation/log_pplx was not better than ${values[0]}, its value at step 3, in 2 evaluations.`;
    expect(stdout).toContain(`Training ends at step 9: ${reason}\n`);
    expect(readdirSync(join(directory, 'checkpoints'))).toEqual([
      'checkpoint_00000003',
      'checkpoint_00000009',
    ]);
    // Started again, it ends at the same step for the same reason.
    expect((await run(tracked)).stdout).toContain(`Training ends at step 9: ${reason}\n`);

    const evaluate = (checkpoint: string) => run([...tracked, '--mode=eval', `--checkpoint=${checkpoint}`]);
    for (const [checkpoint, step, value] of [
      ['best', 3, values[0]],
      ['9', 9, values[2]],
    ] as const) {
      expect((await evaluate(checkpoint)).code).toBe(0);
      const last = metricLines(directory).findLast(({ program }) => program === 'eval_test_validation');
      expect(last).toMatchObject({ step, 'Metrics/log_pplx': value });
    }
    expect(await evaluate('5')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no checkpoint for step 5; there are checkpoints for steps 3, 9'),
    });
  },
);

longTest('a tracked metric survives a restart; what it needs is named', async () => {
  const directory = temporaryDirectory();
  expect((await run(flagsOf('Tracked', directory, 'datasets[0].failsAt=7'))).code).toBe(1);
  expect(await run(flagsOf('Tracked', directory))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Training ends at step 9: '),
  });
  const refused = (...sets: readonly string[]) => run(flagsOf('Tracked', temporaryDirectory(), ...sets));
  expect(await refused('task.train.trackMetric.evaluation=eval_test_validatoin')).toMatchObject({
    code: 2,
    stderr:
      "task.train.trackMetric.evaluation: this run has no 'eval_test_validatoin'. Did you mean 'eval_test_validation'? " +
      'Its programs: eval_train, eval_test_validation, eval_test_rolling, decode_test_validation.\n',
  });
  const { stdout } = await refused('task.train.trackMetric.metric=log_ppl');
  expect(stdout).toContain(
    "track_metric at step 3 failed, training goes on: task.train.trackMetric.metric: 'eval_test_validation' has no 'log_ppl'. Did you mean 'log_pplx'? ",
  );
  const untracked = temporaryDirectory();
  expect(
    (await run(flagsOf('Faulty', untracked).map((flag) => flag.replace('patient.', 'faulty.')))).code,
  ).toBe(0);
  expect(await run([...flagsOf('Tracked', untracked), '--mode=eval', '--checkpoint=best'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      'there is no best checkpoint: the run did not track a metric (task.train.trackMetric)',
    ),
  });
});
