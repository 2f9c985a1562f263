/** @file Training that goes on with another optimizer and model part: what is restored, what begins anew, what is told. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { flatViews } from '../../src/compiler/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { runJob } from '../../src/programs/index.js';
import { runLoop } from '../../src/programs/loop.js';
import { restoredLines } from '../../src/programs/startingCheckpoint.js';
import type { JobOptions } from '../../src/runs/index.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { openJob, tinyOptions } from './tinyJob.js';

const trained = tinyOptions({ numTrainSteps: 2 });
beforeAll(async () => {
  await runLoop((await openJob(trained)).loop);
});
const changed = (jobLogDir: string): JobOptions => {
  const options = tinyOptions({ numTrainSteps: 3 }, { jobLogDir });
  const { model, train } = options.task as any;
  model.lmTpl.stackedTransformerTpl.numLayers = 2;
  train.learner = Learner.config({ optimizer: Sgd.config({ learningRate: 0.1, momentum: 0.9 } as never) });
  return { ...options, restoreChanged: 'apply' };
};

longTest('what fits is restored, the rest begins as in a new run, and the same command goes on', async () => {
  const options = changed(trained.jobLogDir);
  await expect(openJob({ ...options, restoreChanged: undefined })).rejects.toThrow('--restore_changed');
  const fresh = await openJob(changed(temporaryDirectory()));
  const { start, loop } = await openJob(options);
  const { state, restored } = start;
  expect(state.step).toBe(2);
  const before = await openJob({ ...tinyOptions({ numTrainSteps: 2 }, trained) });
  const [theirs, initial] = [before.start.state.views, fresh.start.state.views];
  const outcomes = new Set<string>();
  for (const [path, values] of Object.entries(state.views)) {
    expect(values, path).toEqual(theirs[path] ?? initial[path]);
    outcomes.add(path in theirs ? 'restored' : 'initial');
  }
  expect([...outcomes]).toEqual(expect.arrayContaining(['restored', 'initial']));
  const slotViews = ({ slots, slotLayouts }: typeof state, slot: string): Record<string, Float32Array> =>
    slots[slot] === undefined ? {} : flatViews(slotLayouts[slot]!, slots[slot] as Float32Array);
  for (const slot of Object.keys(state.slots)) {
    const saved = slotViews(before.start.state, slot);
    for (const [path, values] of Object.entries(slotViews(state, slot)))
      expect(values, `${slot} of ${path}`).toEqual(saved[path] ?? new Float32Array(values.length));
  }
  const [sum, table] = restoredLines(restored!, {} as never).slice(-2);
  expect(sum).toMatch(/^Of \d+ tensors: \d+ restored; \d+ begins anew; \d+ left out\.$/);
  expect(table).toMatch(/^tensor +checkpoint +model +result\n/);
  await runLoop(loop);
  const again = await openJob(options);
  expect([again.start.state.step, again.start.restored?.matching]).toEqual([3, undefined]);
});

test('a dry run shows the table, and leaves the directory as it is', async () => {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  try {
    const jobLogDir = join(temporaryDirectory(), 'none');
    const options = changed(jobLogDir);
    await runJob({ ...options, checkpoint: join(trained.jobLogDir, '2'), restoreChanged: 'dry_run' });
    expect(existsSync(jobLogDir)).toBe(false);
  } finally {
    vi.restoreAllMocks();
  }
  expect(written.join('')).toMatch(/ Restoring it needs --restore_changed\.\n$/);
});
