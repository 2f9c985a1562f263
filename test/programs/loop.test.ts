/** @file Programs of one's own in the training loop: when they run, what they tell, how they end training. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { oneProcess, project, temporaryDirectory } from '../command.js';
import { stateAt, untimedLines } from './runs.js';

const run = oneProcess('src/main.ts', fileURLToPath(new URL('../fixtures/faults', import.meta.url)));
const flags = (directory: string, ...sets: readonly string[]) => [
  ...['--exp=patient.Patient', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
  ...[`dataPath=${join(project, 'corpus/counting.txt')}`, 'numTrainSteps=12', ...sets].flatMap((set) => [
    '--set',
    set,
  ]),
];

const programsAt = (directory: string) =>
  untimedLines(directory).map(({ program, step }) => `${step} ${program}`);

const validation = ['eval_train', 'eval_test_validation', 'eval_test_rolling'];
const at = (step: number, ...programs: readonly string[]) => programs.map((program) => `${step} ${program}`);

test('early stopping: the last step is where it is asked for, what is due at the end runs, all is saved', async () => {
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
    'Training ends at step 9: eval_test_validation has not become better for 2 evaluations.\nTrained patient.Patient to step 9; ',
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

test('a resumed run goes on with what its programs know', async () => {
  const directory = temporaryDirectory();
  expect((await run(flags(directory, 'datasets[0].failsAt=7'))).code).toBe(1);
  const { code, stdout } = await run(flags(directory));
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Training ends at step 9: '),
  });
});

test('its failure is told as that of an evaluation; two of one name are refused', async () => {
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
