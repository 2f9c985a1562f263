/** @file What stops a run besides Ctrl-C: hang-ups, output that nobody reads, signals before there is anything to save. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isAlive } from '../../src/system/processes.js';
import { type Running, startCommand, temporaryDirectory } from '../command.js';
import { folderOf, gccThat } from '../compiler/native/toolchain/fakes.js';
import { longTest } from '../longTest.js';
import { stepReached, trainLosses } from './runs.js';

const flags = (directory: string, ...more: string[]) => [
  '--exp=tiny.Tiny',
  `--job_log_dir=${directory}`,
  ...['--set', 'numTrainSteps=100000'],
  ...['--set', 'task.train.evalIntervalSteps=100000'],
  ...more,
];

/** The step of the newest checkpoint, and the last one in the metrics. */
function steps(directory: string): [number, unknown] {
  const newest = readdirSync(join(directory, 'checkpoints')).sort().at(-1)!;
  return [Number(newest.slice('checkpoint_'.length)), trainLosses(directory).at(-1)?.[0]];
}

async function begun(directory: string, env = {}, ...more: string[]): Promise<Running> {
  const run = startCommand(flags(directory, ...more), undefined, undefined, env);
  await stepReached(directory, 2, run);
  return run;
}

test.each<[string, number, string, (run: Running) => unknown]>([
  ['SIGHUP', 129, 'SIGHUP', ({ child }) => child.kill('SIGHUP')],
  ['output that nobody reads', 141, 'SIGPIPE', ({ child }) => child.stdout!.destroy()],
])('%s saves the newest step and exits with %i', async (_, code, name, stop) => {
  const directory = temporaryDirectory();
  const run = await begun(directory);
  stop(run);
  const ended = await run.finished;
  expect([ended.code, ended.stderr]).toEqual([
    code,
    `\n${name}: saving a checkpoint, then leaving. Once more leaves at once.\n`,
  ]);
  const [saved, last] = steps(directory);
  expect(saved).toBe(last);
});

longTest('the eager engine, which keeps the event loop busy, answers after a step', async () => {
  const directory = temporaryDirectory();
  const run = await begun(directory, {}, '--engine=eager');
  run.child.kill('SIGINT');
  expect((await run.finished).code).toBe(130);
  const [saved, last] = steps(directory);
  expect(saved).toBe(last);
});

longTest('a run that was started with nohup outlives its terminal', async () => {
  const directory = temporaryDirectory();
  const run = await begun(directory, { _: '/usr/bin/nohup' });
  const before = trainLosses(directory).at(-1)![0];
  run.child.kill('SIGHUP');
  await stepReached(directory, Number(before) + 3, run);
  run.child.kill('SIGTERM');
  expect((await run.finished).code).toBe(143);
});

longTest('a signal during compilation ends the run at once, with the compiler and its children', async () => {
  const root = temporaryDirectory();
  const log = join(root, 'pids');
  const folder = folderOf({ gcc: gccThat(`sleep 1000 &\necho $$ $! >> '${log}'\nwait`) });
  const directory = join(root, 'job');
  const env = { CC: join(folder, 'gcc'), XDG_CACHE_HOME: join(root, 'cache') };
  const run = startCommand(flags(directory, '--engine=native'), undefined, undefined, env);
  while (!existsSync(log)) {
    if (run.child.exitCode !== null) throw new Error((await run.finished).stderr);
    await sleep(10);
  }
  run.child.kill('SIGTERM');
  const { code, stderr } = await run.finished;
  expect({ code, stderr }).toEqual({ code: 143, stderr: '\nSIGTERM: leaving.\n' });
  const pids = readFileSync(log, 'utf8').split(/\s+/).filter(Boolean).map(Number);
  expect(pids.length).toBeGreaterThanOrEqual(2);
  while (pids.some(isAlive)) await sleep(5);
  expect(readdirSync(join(directory, 'checkpoints'))).toEqual([]);
});
