/** @file `luthier metrics`: values of metrics by run, step and name, as a table, CSV, JSON Lines and Parquet. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { expect, test } from 'vitest';
import { MetricsFile } from '../../src/summaries/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';

const luthier = oneProcess('src/tools/commandLine.ts');

/** Two runs; the first was killed after step 3, went on from step 2, and was evaluated twice at step 2. */
function twoRuns(): string {
  const root = temporaryDirectory();
  const directories = ['a', 'b,c'].map((name) => join(root, name));
  for (const directory of directories) mkdirSync(directory);
  const path = join(directories[0]!, 'metrics.jsonl');
  const killed = new MetricsFile(path);
  for (const step of [1, 2, 3]) killed.write({ program: 'train', step, loss: step, note: 'text' });
  killed.close();
  appendFileSync(path, '{"program":"train","st');
  const again = new MetricsFile(path, { resumeStep: 2 });
  for (const value of [7, 8])
    again.write({ program: 'eval_test_x', step: 2, 'Metrics/total_loss': value, batches: 4 });
  again.write({ program: 'train', step: 3, loss: Number.NaN, 'learning/lr': 0.5 });
  again.close();
  const other = new MetricsFile(join(directories[1]!, 'metrics.jsonl'));
  other.write({ program: 'train', step: 3, loss: 30 });
  other.close();
  return root;
}

test('each metric has a row for each step of a run, once over restarts', async () => {
  const root = twoRuns();
  const { code, stdout, stderr } = await luthier(['metrics', root, '--format=csv']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.replaceAll(`${root}/`, '').trim().split('\n')).toEqual([
    'run,program,metric,step,value',
    'a,train,loss,1,1',
    'a,train,loss,2,2',
    'a,eval_test_x,total_loss,2,8',
    'a,eval_test_x,batches,2,4',
    'a,train,loss,3,NaN',
    'a,train,learning/lr,3,0.5',
    '"b,c",train,loss,3,30',
  ]);
  const table = await luthier(['metrics', join(root, 'b,c')]);
  const cells = table.stdout.replaceAll(`${root}/`, '').trim().split(/\s+/);
  expect(cells).toEqual(['run', 'program', 'metric', 'step', 'value', 'b,c', 'train', 'loss', '3', '30']);
});

test('metrics and steps are chosen; Parquet has the rows of the report', async () => {
  const root = twoRuns();
  const file = join(root, 'metrics.parquet');
  const flags = ['--only=train/loss,eval_*/total_loss', '--steps=2-', '--format=jsonl', `--parquet=${file}`];
  const { stdout } = await luthier(['metrics', root, ...flags]);
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(rows.map(({ program, metric, step, value }) => [program, metric, step, value])).toEqual([
    ['train', 'loss', 2, 2],
    ['eval_test_x', 'total_loss', 2, 8],
    ['train', 'loss', 3, 'NaN'],
    ['train', 'loss', 3, 30],
  ]);
  const bytes = readFileSync(file);
  const stored = await parquetReadObjects({ file: new Uint8Array(bytes).buffer });
  expect(stored).toEqual(rows.map((row) => ({ ...row, step: BigInt(row.step), value: Number(row.value) })));
  const last = await luthier(['metrics', root, '--steps=-1', '--format=json']);
  expect(JSON.parse(last.stdout)).toMatchObject([{ metric: 'loss', step: 1, value: 1 }]);
});

test('the wall time of a run is at the end of its rows', async () => {
  const root = twoRuns();
  const line = { process: 5000, from: 0, step: 3, seconds: { start: 2, step: 6 } };
  writeFileSync(join(root, 'a/goodput.jsonl'), `${JSON.stringify(line)}\n`);
  const chosen = '--only=goodput/s*,train/loss';
  const { stdout } = await luthier(['metrics', root, chosen, '--steps=3', '--format=csv']);
  expect(stdout.replaceAll(`${root}/`, '').trim().split('\n').slice(1)).toEqual([
    'a,train,loss,3,NaN',
    'a,run,goodput/start_sec,3,2',
    'a,run,goodput/step_sec,3,6',
    'a,run,goodput/summaries_sec,3,0',
    'a,run,goodput/save_stall_sec,3,0',
    'a,run,goodput/share,3,0.75',
    '"b,c",train,loss,3,30',
  ]);
});

test('wrong command lines and broken runs are named', async () => {
  const root = twoRuns();
  expect(await luthier(['metrics', root, '--steps=few'])).toMatchObject({
    code: 2,
    stderr: '--steps=few: expected steps such as 100-200, 100-, -200 or 100.\n',
  });
  expect(await luthier(['metrics', root, '--only=los'])).toMatchObject({
    code: 2,
    stderr: '--only=los: no run has such a metric at these steps.\n',
  });
  mkdirSync(join(root, 'young'));
  writeFileSync(join(root, 'young', 'status.json'), '{}');
  const { code, stdout, stderr } = await luthier(['metrics', root, '--only=lr', '--format=csv']);
  expect({ code, rows: stdout.trim().split('\n').length }).toEqual({ code: 1, rows: 2 });
  expect(stderr).toContain('young: metrics.jsonl cannot be read: ');
});
