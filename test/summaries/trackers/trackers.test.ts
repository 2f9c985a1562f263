/** @file Trackers of a run: Prometheus' text, trackio's inbox, and runs that outlive a tracker's failures. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { temporaryName } from '../../../src/files/index.js';
import { build } from '../../../src/hparams/index.js';
import { RunTrackers } from '../../../src/programs/trackedRun.js';
import { BaseTracker, PrometheusFile, type TrackedRun, Trackio } from '../../../src/summaries/index.js';
import { temporaryDirectory } from '../../command.js';

const runIn = (jobLogDir: string): TrackedRun => ({
  name: 'lm.Small',
  jobLogDir,
  config: { lr: 0.5, x: 'a' },
});

test("Prometheus' text has the newest scalars of each program, those of a name together", () => {
  const directory = join(temporaryDirectory(), 'say "a\\b"');
  mkdirSync(directory);
  const tracker = build(PrometheusFile.config());
  tracker.begin(runIn(directory));
  tracker.log({ program: 'train', step: 1, scalars: { loss: 4 } });
  tracker.log({ program: 'eval', step: 1, scalars: { loss: Number.NEGATIVE_INFINITY } });
  tracker.log({
    program: 'train',
    step: 2,
    scalars: { loss: Number.NaN, 'Metrics/top-1': 0.5, Metrics_top_1: 1e-9 },
  });
  const run = `experiment="lm.Small",job_log_dir="${directory.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
  expect(readFileSync(join(directory, 'metrics.prom'), 'utf8')).toBe(
    [
      '# TYPE luthier_step gauge',
      `luthier_step{${run},program="train",tag="step"} 2`,
      `luthier_step{${run},program="eval",tag="step"} 1`,
      '# TYPE luthier_loss gauge',
      `luthier_loss{${run},program="train",tag="loss"} NaN`,
      `luthier_loss{${run},program="eval",tag="loss"} -Inf`,
      '# TYPE luthier_Metrics_top_1 gauge',
      `luthier_Metrics_top_1{${run},program="train",tag="Metrics/top-1"} 0.5`,
      `luthier_Metrics_top_1{${run},program="train",tag="Metrics_top_1"} 1e-9`,
      '',
    ].join('\n'),
  );
  expect(readdirSync(directory)).toEqual(['metrics.prom']);
});

/** Records of an inbox, in the order of their steps. */
function records(directory: string): Record<string, unknown>[] {
  const inbox = join(directory, 'inbox');
  return readdirSync(inbox, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => JSON.parse(readFileSync(join(inbox, name), 'utf8')))
    .sort((a, b) => a.step - b.step);
}

test("a step that a run writes again has the record's id, and trackio counts it once; others have ids of their own", () => {
  const directory = temporaryDirectory();
  const write = (steps: readonly number[], jobLogDir: string, program = 'train') => {
    const tracker = build(Trackio.config({ directory }));
    tracker.begin(runIn(jobLogDir));
    for (const step of steps) tracker.log({ program, step, scalars: { loss: 1 / step, bad: Number.NaN } });
  };
  write([1, 2], '/runs/a');
  const [first, second] = records(directory);
  expect(first).toEqual({
    ...{
      v: 1,
      kind: 'metric',
      project: 'lm.Small',
      run: 'a',
      run_id: expect.stringMatching(/^[\da-f]{32}$/),
    },
    ...{ config: { lr: 0.5, x: 'a' }, metrics: { 'train/loss': 1, 'train/bad': 'NaN' }, step: 1 },
    ...{ timestamp: expect.stringMatching(/^\d{4}-.*Z$/), log_id: expect.stringMatching(/^[\da-f]{32}$/) },
  });
  expect(second).toMatchObject({ step: 2, run_id: first!.run_id });
  // As after a kill behind step 1.
  write([2, 3], '/runs/a');
  write([3], '/runs/b');
  write([3], '/runs/a', 'eval_train');
  const all = records(directory);
  expect(all).toHaveLength(6);
  expect(new Set(all.map(({ log_id }) => log_id)).size).toBe(5);
  expect(new Set(all.filter(({ step }) => step === 2).map(({ log_id }) => log_id)).size).toBe(1);
});

test('what a killed process was writing goes when a run begins, so that trackio can remove its directory', () => {
  const directory = temporaryDirectory();
  const killed = join(directory, 'inbox', 'killed');
  mkdirSync(killed, { recursive: true });
  const { pid } = spawnSync('true');
  const fragment = join(killed, '00000001.jsonl');
  writeFileSync(fragment, '{}');
  writeFileSync(temporaryName(fragment).replace(`${process.pid}`, `${pid}`), '{"half');
  build(Trackio.config({ directory })).begin(runIn(directory));
  expect(readdirSync(killed)).toEqual(['00000001.jsonl']);
});

test("trackio's directory is that of its variables", () => {
  const [own, home] = [temporaryDirectory(), temporaryDirectory()];
  const tracked = () => {
    const tracker = build(Trackio.config({ project: 'p', run: 'r' }));
    tracker.begin(runIn('/runs/a'));
    tracker.log({ program: 'train', step: 1, scalars: {} });
  };
  vi.stubEnv('HF_HOME', home);
  vi.stubEnv('TRACKIO_DIR', undefined);
  tracked();
  vi.stubEnv('TRACKIO_DIR', own);
  tracked();
  vi.unstubAllEnvs();
  for (const directory of [own, join(home, 'trackio')])
    expect(records(directory)).toMatchObject([{ project: 'p', run: 'r' }]);
});

/** Fails while it is told to. */
class Flaky extends BaseTracker.with({}) {
  readonly seen: number[] = [];
  fails = false;
  override begin(): void {
    if (this.fails) throw new Error('no token');
  }
  override log({ step }: { step: number }): void {
    if (this.fails) throw new Error('gone');
    this.seen.push(step);
  }
}

test('a tracker that cannot begin is an error; one that fails later is told once, and others go on', () => {
  const [flaky, sound, told] = [build(Flaky.config()), build(Flaky.config()), [] as string[]];
  const trackers = new RunTrackers(
    [flaky, sound],
    () => runIn('/runs/a'),
    (line) => told.push(line),
  );
  for (const step of [1, 2, 3, 4, 5]) {
    flaky.fails = [2, 3, 5].includes(step);
    trackers.log({ program: 'train', step, scalars: { loss: 1 } });
  }
  trackers.close();
  expect([flaky.seen, sound.seen]).toEqual([
    [1, 4],
    [1, 2, 3, 4, 5],
  ]);
  expect(told).toEqual([
    'Flaky: train at step 2 is not tracked, and the run goes on: gone',
    'Flaky: train at step 5 is not tracked, and the run goes on: gone',
  ]);
  flaky.fails = true;
  expect(
    () =>
      new RunTrackers(
        [flaky],
        () => runIn('/runs/a'),
        () => {},
      ),
  ).toThrow('Flaky of task.train.trackers cannot begin: no token');
});

test('whatever stands in the place of the file is told, and the run goes on', () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'metrics.prom'));
  const told: string[] = [];
  const trackers = new RunTrackers(
    [build(PrometheusFile.config())],
    () => runIn(directory),
    (line) => told.push(line),
  );
  trackers.log({ program: 'train', step: 1, scalars: { loss: 1 } });
  expect(told).toEqual([
    expect.stringMatching(
      /^PrometheusFile: train at step 1 is not tracked, and the run goes on: EISDIR: .*metrics\.prom/,
    ),
  ]);
  writeFileSync(join(directory, 'inbox'), '');
  const trackio = build(Trackio.config({ directory }));
  expect(
    () =>
      new RunTrackers(
        [trackio],
        () => runIn(directory),
        () => {},
      ),
  ).toThrow(/^Trackio of task\.train\.trackers cannot begin: .*inbox/);
});
