/** @file Programs of a user's own by the command: hooks of real runs that end, fail and go on; jobs on checkpoints. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { oneProcess, project, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines, stateAt, untimedLines } from './runs.js';

const run = oneProcess('src/main.ts', fileURLToPath(new URL('../fixtures/faults', import.meta.url)));
const flags = (directory: string, ...sets: readonly string[]) => [
  ...['--exp=watching.Watching', `--job_log_dir=${directory}`, '--mode=train_and_eval'],
  ...[`dataPath=${join(project, 'corpus/counting.txt')}`, 'numTrainSteps=12', ...sets].flatMap((set) => [
    '--set',
    set,
  ]),
];

/** What the diary says of a hook: the step, and what there is to it. */
const diary = (directory: string, hook: string): unknown[][] =>
  readFileSync(join(directory, 'diary.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .flatMap(([which, ...about]) => (which === hook ? [about] : []));

const of = (directory: string, program: string) =>
  metricLines(directory).filter((line) => line.program === program);

let whole: string;

beforeAll(async () => {
  whole = temporaryDirectory();
  const { code, stderr } = await run(flags(whole));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('hooks of a run: its start, each third step, each checkpoint, its end', () => {
  const saved = readdirSync(join(whole, 'checkpoints')).map((name) =>
    Number(name.slice('checkpoint_'.length)),
  );
  expect([diary(whole, 'start'), diary(whole, 'end'), diary(whole, 'onError')]).toEqual([[[0]], [[12]], []]);
  expect(diary(whole, 'run')).toEqual([[3], [6, 5, 5], [9, 5, 5], [12, 2, 12]]);
  const told = diary(whole, 'onCheckpoint') as [number, number, string][];
  // Training goes on while a checkpoint is written.
  for (const [step, at] of told) expect(step).toBeGreaterThanOrEqual(at);
  expect(told.map(([, at]) => at)).toEqual(expect.arrayContaining(saved));
  expect(told.map(([, , path]) => path)).toEqual(
    told.map(([, at]) => `/checkpoints/checkpoint_${String(at).padStart(8, '0')}`),
  );
});

test('the value of other data: told as an evaluation, its best checkpoint named', async () => {
  const lines = of(whole, 'best_of_other').filter((line) => line.batches !== undefined);
  expect(lines.map(({ step, batches }) => [step, batches])).toEqual([3, 6, 9, 12].map((step) => [step, 2]));
  const losses = lines.map((line) => line['Metrics/log_pplx'] as number);
  const at = lines[losses.indexOf(Math.min(...losses))]!.step as number;
  const name = `checkpoint_${String(12).padStart(8, '0')}`;
  const metadata = JSON.parse(readFileSync(join(whole, 'checkpoints', name, 'metadata.json'), 'utf8'));
  expect(metadata.best).toEqual({ step: at, metric: 'best_of_other/log_pplx', value: Math.min(...losses) });
});

longTest('an error is reported by a hook, and a run that goes on comes to the same', async () => {
  const directory = temporaryDirectory();
  const failing = flags(directory, 'datasets[0].failsAt=7', 'task.train.programs[1].failsIn=onError');
  const { code, stdout, stderr } = await run(failing);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Error: the shelf fell over\n/);
  expect(diary(directory, 'onError')).toEqual([[7, 'the shelf fell over']]);
  expect(stdout).toMatch(
    /\nSaved at step 7 of 12; .*\n(.*\n)*diary failed, too, in its onError: no ink in onError\n/,
  );
  expect(diary(directory, 'end')).toEqual([]);
  const resumed = await run(flags(directory));
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(stateAt(directory, 12).equals(stateAt(whole, 12))).toBe(true);
  expect(untimedLines(directory)).toEqual(untimedLines(whole));
  expect([diary(directory, 'start'), diary(directory, 'end')]).toEqual([[[0], [7]], [[12]]]);
});

longTest('a job on a checkpoint runs the same programs, with what they kept in training', async () => {
  const before = of(whole, 'best_of_other').at(-2)!;
  const diaryBefore = readFileSync(join(whole, 'diary.jsonl'), 'utf8');
  const ending = ['--set', 'task.train.programs[1].endsAt=12'];
  const { code, stdout, stderr } = await run([...flags(whole), ...ending, '--mode=eval']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('diary would end training at step 12: the diary is full.\n');
  const [evaluated, summaries] = of(whole, 'best_of_other').slice(-2);
  expect(evaluated).toMatchObject({ step: 12, 'Metrics/log_pplx': before['Metrics/log_pplx'] });
  expect(summaries).toMatchObject({ best: of(whole, 'best_of_other').at(-3)!.best });
  expect(readFileSync(join(whole, 'diary.jsonl'), 'utf8').slice(diaryBefore.length)).toBe(
    '["start",12]\n["run",12,2,12]\n["end",12]\n',
  );
  const decoded = await run([...flags(whole), '--mode=decode_once']);
  expect(decoded.code, decoded.stderr).toBe(0);
  expect(decoded.stdout).toMatch(/\ndecode_test_validation at step 12: (.*\n)*best_of_other at step 12: /);
  const failing = ['--set', 'task.train.programs[1].failsIn=run'];
  const failed = await run([...flags(whole), ...failing, '--mode=eval']);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(/^Error: no ink in run\n/);
  expect(diary(whole, 'onError')).toEqual([[12, 'no ink in run']]);
});
