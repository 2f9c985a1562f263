/** @file A sweep of real runs: one is killed, the sweep goes on with it when it is started again. */

import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readRun } from '../../src/runs/runSummary.js';
import { SweepRecord } from '../../src/runs/sweepRecord.js';
import { type Running, runCommand, startCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

const flags = (directory: string, steps: number, ...more: string[]) => [
  '--exp=tiny.Tiny',
  `--job_log_dir=${directory}`,
  ...['--set', `numTrainSteps=${steps}`],
  ...['--set', 'task.train.evalIntervalSteps=1000'],
  ...more,
];
const grid = ['--sweep', 'modelDims=8,16', '--sweep', 'learningRate=1e-2,2e-2'];
const names = [
  'modelDims=8,learningRate=1e-2',
  'modelDims=8,learningRate=2e-2',
  'modelDims=16,learningRate=1e-2',
  'modelDims=16,learningRate=2e-2',
];

interface Recorded {
  name: string;
  status: string;
  step?: number;
  loss?: number;
}

function record(directory: string): Recorded[] {
  const path = join(directory, 'sweep.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).runs : [];
}

function metrics(directory: string, name: string): string {
  const path = join(directory, name, 'metrics.jsonl');
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

async function until(condition: () => boolean, { child }: Running): Promise<void> {
  while (!condition()) {
    if (child.exitCode !== null) throw new Error('the sweep ended before that');
    await sleep(5);
  }
}

longTest(
  '2 x 2 runs: stopped by SIGTERM in the second, started again, finished; finished runs are passed over',
  async () => {
    const directory = temporaryDirectory();
    const sweep = startCommand(flags(directory, 40, ...grid));
    await until(() => metrics(directory, names[1]!).includes('"step":2'), sweep);
    sweep.child.kill('SIGTERM');
    const stopped = await sweep.finished;
    expect([stopped.code, stopped.stderr]).toEqual([
      143,
      expect.stringContaining('SIGTERM: saving a checkpoint'),
    ]);
    expect(record(directory).map(({ status }) => status)).toEqual([
      'finished',
      'stopped',
      'waiting',
      'waiting',
    ]);
    expect(await readRun(join(directory, names[1]!))).toMatchObject({
      ...{ state: 'stopped', reason: 'SIGTERM', problems: [] },
    });
    const { step } = record(directory)[1]!;
    expect(step).toBeLessThan(40);
    expect(
      existsSync(join(directory, names[1]!, 'checkpoints', `checkpoint_${String(step).padStart(8, '0')}`)),
    ).toBe(true);

    const before = statSync(join(directory, names[0]!, 'experiment.json')).mtimeMs;
    const { code, stdout } = await runCommand(flags(directory, 40, ...grid));
    expect(code, stdout).toBe(0);
    expect(stdout).toContain(`Run 1 of 4: ${names[0]}: finished earlier\n`);
    expect(statSync(join(directory, names[0]!, 'experiment.json')).mtimeMs).toBe(before);
    expect(stdout).toMatch(new RegExp(`in ${directory}/${names[1]}[^\\n]*step ${step}|checkpoint_0*${step}`));
    expect(record(directory)).toEqual(
      names.map((name) => expect.objectContaining({ name, status: 'finished', step: 40 })),
    );
    const table = stdout.slice(stdout.indexOf('\nrun ')).trim().split('\n');
    expect(table[0]).toMatch(/^run +state +step +duration +last +best +at step +modelDims +learningRate$/);
    const rows = table.slice(1, 5).map((line) => line.split(/ {2,}/));
    expect(rows.map((row) => row.slice(0, 3)).sort()).toEqual(
      names.map((name) => [name, 'finished', '40/40']).sort(),
    );
    const best = rows.map((row) => Number(row[4]));
    expect(best).toEqual(best.toSorted((a, b) => a - b));
    expect(table.slice(5)).toEqual([
      'By eval_train/total_loss, lowest first.',
      expect.stringMatching(/^Left out: \d+ more that differ with these constants, such as task\.[\w.]+\.$/),
    ]);
    const experiment = JSON.parse(readFileSync(join(directory, names[3]!, 'experiment.json'), 'utf8'));
    expect(experiment.overrides).toEqual([
      '--set numTrainSteps=40',
      '--set task.train.evalIntervalSteps=1000',
      '--set modelDims=16',
      '--set learningRate=2e-2',
    ]);

    rmSync(join(directory, names[0]!), { recursive: true });
    rmSync(join(directory, names[1]!, 'checkpoints'), { recursive: true });
    rmSync(join(directory, names[2]!, 'checkpoints/checkpoint_00000040/state.safetensors'));
    const broken = await runCommand(flags(directory, 40, ...grid));
    expect(broken.code).toBe(1);
    expect(broken.stdout.match(/^Run \d.*$/gm)).toEqual([
      `Run 1 of 4: ${names[0]}: finished earlier, but its directory is gone: trained again`,
      `Run 2 of 4: ${names[1]}: finished earlier, but its checkpoints are gone: trained again`,
      `Run 3 of 4: ${names[2]}: finished earlier, but its last checkpoint is gone: trained again`,
      `Run 4 of 4: ${names[3]}: finished earlier`,
    ]);
    // What is left of a checkpoint stays, for its user to decide.
    expect(broken.stderr).toContain('checkpoint_00000040');
    expect(record(directory).map(({ status }) => status)).toEqual([
      'finished',
      'finished',
      'failed',
      'finished',
    ]);
    for (const name of names.slice(0, 2))
      expect(existsSync(join(directory, name, 'checkpoints/checkpoint_00000040/state.safetensors'))).toBe(
        true,
      );
  },
);

test.each([
  ['SIGTERM', 'stopped', 143],
  ['SIGKILL', 'running', null],
] as const)(
  'a sweep that gets %s takes its run along, and records it as %s',
  async (signal, status, code) => {
    const directory = temporaryDirectory();
    const sweep = startCommand(flags(directory, 100_000, '--sweep', 'modelDims=8,16'));
    await until(() => metrics(directory, 'modelDims=8').includes('"step":2'), sweep);
    sweep.child.kill(signal);
    const finished = await sweep.finished;
    // The pipes are closed when the run has ended, too.
    expect(finished.stderr).toContain('SIGTERM: saving a checkpoint, then leaving');
    expect(finished.code).toBe(code);
    expect(record(directory)).toEqual([
      expect.objectContaining({ name: 'modelDims=8', status }),
      expect.objectContaining({ name: 'modelDims=16', status: 'waiting' }),
    ]);
    expect((await readRun(join(directory, 'modelDims=8'))).state).toBe('stopped');
  },
);

longTest('a run that fails does not keep the others from running', async () => {
  const directory = temporaryDirectory();
  const paths = ['--sweep', 'dataPath=corpus/none.txt,corpus/counting.txt'];
  const { code, stdout, stderr } = await runCommand(flags(directory, 2, ...paths));
  expect(code).toBe(1);
  expect(stderr).toContain("No file matches 'corpus/none.txt'");
  expect(record(directory).map(({ status }) => status)).toEqual(['failed', 'finished']);
  expect(stdout).toMatch(
    /(dataPath=corpus_none\.txt-[\da-f]{8}) +failed \(1\) .*\nBy eval_train\/total_loss, lowest first\.\n\1 failed: .*No file matches 'corpus\/none\.txt'.*\n$/,
  );
});

test('what is no record of a sweep is left alone', async () => {
  const directory = temporaryDirectory();
  const refused = (reason: string) =>
    `${directory}/sweep.json is not what a sweep wrote (${reason}): move it away, or take another --job_log_dir.`;
  symlinkSync('nowhere', join(directory, 'sweep.json'));
  expect(() => new SweepRecord(directory, 'a', [], [])).toThrow(
    'sweep.json is not what a sweep wrote (ENOENT:',
  );
  rmSync(join(directory, 'sweep.json'));
  writeFileSync(join(directory, 'sweep.json'), '{"mine": true}');
  const { code, stderr } = await runCommand(flags(directory, 2, ...grid));
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `${refused('format: Invalid input: expected "luthier-sweep", and 4 more')}\n`,
  });
  expect(readFileSync(join(directory, 'sweep.json'), 'utf8')).toBe('{"mine": true}');
  const head = '{"format":"luthier-sweep","version":1,"name":"a","sweeps":[],"runs":';
  writeFileSync(join(directory, 'sweep.json'), `${head}[5,null]}`);
  expect(() => new SweepRecord(directory, 'a', [], [])).toThrow(
    refused('runs[0]: Invalid input: expected object, received number, and 1 more'),
  );
});
