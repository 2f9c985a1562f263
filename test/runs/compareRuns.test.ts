/** @file Runs compared: their states, metrics, order, and settings that differ, from what job directories have. */
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareRuns, runTable } from '../../src/runs/compareRuns.js';
import { readMetrics, readRun } from '../../src/runs/runSummary.js';
import { MetricsFile } from '../../src/summaries/index.js';
import { acquireLock } from '../../src/system/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';

const luthier = oneProcess('src/tools/commandLine.ts');

interface Made {
  readonly settings?: Readonly<Record<string, string>>;
  /** Text of experiment_cls_vars.txt. */
  readonly constants?: string;
  readonly experiment?: { readonly name?: string; readonly overrides?: readonly string[] };
  /** Evaluation losses at steps 1, 2, …; training has 10 times each. */
  readonly losses?: readonly number[];
  readonly saved?: number;
  readonly status?: Readonly<Record<string, unknown>>;
}

const seconds = (start: number, end: number) => ({
  startedAt: new Date(start * 1000).toISOString(),
  endedAt: new Date(end * 1000).toISOString(),
  secondsBefore: 0,
});

/** A job directory of 3 steps, as training leaves one. */
function makeRun(
  directory: string,
  { settings = {}, constants, experiment, losses = [3, 2, 4], saved = losses.length, status = {} }: Made,
): string {
  mkdirSync(join(directory, 'checkpoints', `checkpoint_0000000${saved}`), { recursive: true });
  const fields = { 'task.train.numTrainSteps': '3', ...settings };
  const lines = Object.entries(fields).map(([path, value]) => `${path} : ${value}\n`);
  writeFileSync(join(directory, 'model_params.txt'), lines.join(''));
  writeFileSync(join(directory, 'experiment.json'), JSON.stringify({ name: 'a.B', ...experiment }));
  if (constants !== undefined) writeFileSync(join(directory, 'experiment_cls_vars.txt'), constants);
  const ended = { state: 'finished', ...seconds(0, 65), ...status };
  writeFileSync(join(directory, 'status.json'), JSON.stringify(ended));
  const metrics = new MetricsFile(join(directory, 'metrics.jsonl'));
  for (const [i, loss] of losses.entries()) {
    metrics.write({ program: 'train', step: i + 1, loss: 10 * loss });
    metrics.write({ program: 'eval_test_x', step: i + 1, 'Metrics/total_loss': loss, 'Metrics/acc': -loss });
  }
  metrics.close();
  return directory;
}

test('runs are listed by the best evaluation loss, with state and differing settings', async () => {
  const root = temporaryDirectory();
  makeRun(join(root, 'sweep/b'), { settings: { 'task.lr': '0.1', 'task.same': '1' } });
  makeRun(join(root, 'a'), {
    settings: { 'task.lr': '0.2', 'task.same': '1' },
    losses: [Number.NaN, 1],
    status: { state: 'stopped', reason: 'SIGINT', secondsBefore: 3600 },
  });
  makeRun(join(root, 'c'), {
    settings: { 'task.lr': '0.2', 'task.same': '1' },
    losses: [5, 6],
    saved: 1,
    status: { state: 'failed', reason: 'No more rows.' },
  });
  const { code, stdout, stderr } = await luthier(['runs', root]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(
    stdout
      .replaceAll(`${root}/`, '')
      .split('\n')
      .map((line) => line.trim().split(/ +/).join(' ')),
  ).toEqual([
    'run state step duration last best at step lr',
    'a stopped 2/3 1h 01m 1 1 2 0.2',
    'sweep/b finished 3/3 1m 05s 4 2 2 0.1',
    'c failed 2/3 1m 05s 6 5 1 0.2',
    '',
    'By eval_test_x/total_loss, lowest first.',
    'c failed: No more rows.',
    '',
  ]);
  const json = JSON.parse(
    (await luthier(['runs', join(root, 'a'), join(root, 'c'), '--sort=-acc', '--format=json'])).stdout,
  );
  expect(json).toMatchObject({ metric: 'eval_test_x/acc', best: 'max', differing: [] });
  expect(json.runs[1]).toEqual({
    directory: expect.stringContaining('c'),
    ...{ state: 'failed', reason: 'No more rows.', step: 2, numTrainSteps: 3, seconds: 65 },
    ...{ settings: {}, problems: [] },
    ...{ last: { step: 2, value: -6 }, best: { step: 1, value: -5 } },
  });
});

test('constants that flags set come first, without what follows from them', async () => {
  const root = temporaryDirectory();
  const make = async (
    dims: number,
    more: Made['settings'] = {},
    overrides: readonly string[] = [],
    name = 'a.B',
  ) =>
    readRun(
      makeRun(join(root, `${dims}-${Object.values(more).join()}-${overrides.length}-${name}`), {
        settings: { 'task.dims': `${dims}`, 'task.hidden': `${4 * dims}`, ...more },
        constants: `Small:\n  hiddenDims: ${4 * dims}\n  path: "a: b"\n--set dims=${dims}:\n  dims: ${dims}\n`,
        experiment: { name, overrides: [`--set dims=${dims}`, ...overrides] },
      }),
    );
  const [narrow, wide, seeded] = [await make(8), await make(16), await make(16, { 'task.seed': '7' })];
  const differences = (...runs: Parameters<typeof compareRuns>[0]) => {
    const { differing, following } = compareRuns(runs);
    return { differing, following };
  };
  const following = ['hiddenDims', 'task.dims', 'task.hidden'];
  expect(differences(narrow, wide)).toEqual({ differing: ['dims'], following });
  expect(compareRuns([narrow, wide]).runs.map(({ settings }) => settings)).toEqual([
    { dims: '8' },
    { dims: '16' },
  ]);
  expect(runTable(compareRuns([narrow, wide]), new Map()).below).toContain(
    'Left out: 3 more that differ with these constants, such as hiddenDims.',
  );
  // Of two runs with equal constants, a setting that differs has another cause.
  expect(differences(narrow, wide, seeded)).toEqual({ differing: ['dims', 'task.seed'], following });
  // So it may have where another flag, or another experiment, is part of the difference.
  const all = { differing: ['dims', 'task.dims', 'task.hidden', 'task.seed'], following: [] };
  expect(differences(narrow, await make(16, { 'task.seed': '8' }, ['--set task.seed=8']))).toEqual(all);
  expect(differences(narrow, await make(16, { 'task.seed': '9' }, [], 'a.C'))).toEqual({
    ...all,
    differing: ['dims', 'experiment', ...all.differing.slice(1)],
  });
});

test('broken and half directories are listed, with what is wrong', async () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'half/checkpoints'), { recursive: true });
  const broken = makeRun(join(root, 'broken'), {});
  writeFileSync(join(broken, 'experiment.json'), '{');
  rmSync(join(broken, 'metrics.jsonl'));
  mkdirSync(join(broken, 'metrics.jsonl'));
  const { code, stdout } = await luthier(['runs', root]);
  expect(code).toBe(1);
  const lines = stdout.replaceAll(`${root}/`, '').split('\n');
  expect(lines.slice(4)).toEqual([
    'No run has reported a metric.',
    expect.stringMatching(/^broken: experiment\.json cannot be read: .*JSON.*\.$/),
    expect.stringMatching(
      /^broken: metrics\.jsonl cannot be read: .*metrics\.jsonl is not a regular file but a directory\.$/,
    ),
    'half: status.json is missing.',
    'half: experiment.json is missing.',
    'half: model_params.txt is missing.',
    'half: metrics.jsonl is missing.',
    '',
  ]);
  expect(await luthier(['runs', join(root, 'none')])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${root}/none: expected a directory with runs, and it cannot be read: `),
  });
  expect(await luthier(['runs', broken, '--sort=-los'])).toMatchObject({
    code: 2,
    stderr: '--sort=los: no run has it. The metrics are: none.\n',
  });
  expect(await luthier(['runs', broken, '--sort=-'])).toMatchObject({
    code: 2,
    stderr: "--sort: expected a value; got ''.\n",
  });
});

test('the tracked metric and its mode are the default; a sign decides otherwise', async () => {
  const settings = {
    'task.train.trackMetric.evaluation': "'eval_test_x'",
    'task.train.trackMetric.metric': "'acc'",
    'task.train.trackMetric.mode': "'max'",
  };
  const run = await readRun(makeRun(temporaryDirectory(), { settings, losses: [1, 2] }));
  const best = (value: number) => ({ metric: 'eval_test_x/acc', runs: [{ best: { value } }] });
  expect(compareRuns([run])).toMatchObject({ best: 'max', ...best(-1) });
  expect(compareRuns([run], { metric: 'acc' })).toMatchObject({ best: 'max', ...best(-1) });
  expect(compareRuns([run], { metric: 'acc', best: 'min' })).toMatchObject({ best: 'min', ...best(-2) });
});

test('a run is running while its lock is held, whatever process its file names; killed, it is unfinished', async () => {
  const directory = makeRun(temporaryDirectory(), {
    status: {
      state: 'running',
      startedAt: new Date(Date.now() - 60_000).toISOString(),
      endedAt: undefined,
      seconds: 60,
      secondsBefore: 30,
    },
  });
  const lock = await acquireLock(join(directory, '.train.lock'));
  const running = await readRun(directory);
  expect(running).toMatchObject({ state: 'running', problems: [], seconds: 90 });
  lock.release();
  expect(await readRun(directory)).toMatchObject({ state: 'unfinished', seconds: 90 });
  writeFileSync(join(directory, '.train.lock'), JSON.stringify({ pid: 1, host: hostname() }));
  expect((await readRun(directory)).state).toBe('unfinished');
});

test('of equal values the first counts; NaN is last but never best; torn lines are left out', async () => {
  const directory = makeRun(temporaryDirectory(), { losses: [2, 1, 1, Number.NaN] });
  appendFileSync(join(directory, 'metrics.jsonl'), '{"program":"train","step":5,"lo');
  expect(readMetrics(directory).get('eval_test_x/total_loss')).toEqual({
    ...{ last: { step: 4, value: Number.NaN }, min: { step: 2, value: 1 }, max: { step: 1, value: 2 } },
  });
});

test('a table has six settings and names the others', async () => {
  const root = temporaryDirectory();
  const settings = (value: string) =>
    Object.fromEntries([...'abcdefgh'].map((name) => [`task.${name}`, value]));
  const runs = [
    await readRun(makeRun(join(root, 'x'), { settings: settings('1'.repeat(40)) })),
    await readRun(makeRun(join(root, 'y'), { settings: settings('2') })),
  ];
  const { header, rows, below } = runTable(compareRuns(runs), new Map());
  expect(header.slice(7)).toEqual([...'abcdef']);
  expect(rows[0]![7]).toBe(`${'1'.repeat(29)}…`);
  expect(below).toEqual([
    'By eval_test_x/total_loss, lowest first.',
    '2 more settings differ, among them task.g, task.h.',
  ]);
});
