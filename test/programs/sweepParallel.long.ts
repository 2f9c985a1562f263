/** @file Runs of a sweep at once: stopped together, gone on with, one that fails, the table of a sweep without. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRun } from '../../src/runs/runSummary.js';
import { runCommand, startCommand, temporaryDirectory } from '../command.js';
import { stepReached } from './runs.js';

const names = ['modelDims=8', 'modelDims=16', 'modelDims=24'];

const flags = (directory: string, steps: number, ...more: string[]) => [
  '--exp=tiny.Tiny',
  `--job_log_dir=${directory}`,
  ...['--set', `numTrainSteps=${steps}`],
  ...['--set', 'task.train.evalIntervalSteps=1000'],
  // What a signal saves is what is gone on from; a save every few steps would take longer than they do.
  ...['--set', 'task.train.saveIntervalSteps=1000'],
  '--num_threads=4',
  ...more,
];

const statuses = (directory: string): string[] =>
  JSON.parse(readFileSync(join(directory, 'sweep.json'), 'utf8')).runs.map(
    ({ status }: { status: string }) => status,
  );

const tableOf = (stdout: string): string => stdout.slice(stdout.indexOf('\nrun '));

test('two at once are saved by one signal; the same command goes on, and tells what one at a time tells', async () => {
  const directory = temporaryDirectory();
  const command = flags(directory, 2000, '--sweep', 'modelDims=8,16,24', '--sweep_parallel=2');
  const sweep = startCommand(command);
  for (const name of names.slice(0, 2)) await stepReached(join(directory, name), 2, sweep);
  expect(existsSync(join(directory, names[2]!))).toBe(false);
  sweep.child.kill('SIGTERM');
  const stopped = await sweep.finished;
  expect([stopped.code, statuses(directory)]).toEqual([143, ['stopped', 'stopped', 'waiting']]);
  expect(stopped.stderr).toContain('SIGTERM: the sweep ends with the 2 present runs.\n');
  for (const [i, name] of names.slice(0, 2).entries()) {
    expect(stopped.stderr).toContain(`[${i + 1}] SIGTERM: saving a checkpoint, then leaving.`);
    expect(stopped.stdout).toContain(`Run ${i + 1} of 3: ${name}: stopped\n`);
    expect(await readRun(join(directory, name))).toMatchObject({ state: 'stopped', problems: [] });
  }

  const { code, stdout } = await runCommand(command);
  expect([code, statuses(directory)], stdout).toEqual([0, ['finished', 'finished', 'finished']]);
  expect(stdout).toContain(`[1] Going on from ${directory}/${names[0]}/checkpoints/`);
  const prefixed = stdout.slice(0, stdout.indexOf('\nrun ')).trim().split('\n');
  for (const line of prefixed) expect(line).toMatch(/^(\[[123]\] \S|Run [123] of 3: )/);
  const experiment = JSON.parse(readFileSync(join(directory, names[2]!, 'experiment.json'), 'utf8'));
  expect(experiment.machine.threads).toBe(2);

  const serial = await runCommand(command.slice(0, -1));
  expect(serial.code).toBe(0);
  expect(tableOf(serial.stdout)).toBe(tableOf(stdout));
  expect(serial.stdout).toContain(`Run 3 of 3: ${names[2]}: finished earlier\n`);
});

test('a run that fails leaves the one beside it alone', async () => {
  const directory = temporaryDirectory();
  const sweep = ['--sweep', 'dataPath=corpus/none.txt,corpus/counting.txt', '--sweep_parallel=2'];
  const { code, stdout, stderr } = await runCommand(flags(directory, 2, ...sweep));
  expect([code, statuses(directory)]).toEqual([1, ['failed', 'finished']]);
  expect(stderr).toContain("[1] TextInput 'train': No file matches 'corpus/none.txt'");
  expect(stdout).toMatch(/Run 1 of 2: dataPath=corpus_none\.txt-[\da-f]{8}: failed \(1\)\n/);
  expect(tableOf(stdout)).toMatch(/\ndataPath=corpus_none\.txt-[\da-f]{8} failed: .*No file matches/);
});
