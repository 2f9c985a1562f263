/** @file The watchdog of a run that hangs: its limit, and a run whose input waits for a stopped process. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Board } from '../../../src/programs/watchdog/board.js';
import { readStatus } from '../../../src/runs/runStatus.js';
import { stateAt } from '../runs.js';
import { hungRun, LIMIT } from './hangs.js';

test('the board tells another thread of beats, the last note and the median of the last 64 steps', () => {
  const written = new Board();
  const read = new Board(written.memory);
  expect([read.median(), read.beats]).toEqual([undefined, 0]);
  for (let i = 0; i < 100; i++) written.addDuration(i < 36 ? 1e6 : i);
  written.beat();
  written.note({ unit: 'eval_test_ä', step: 7, patience: 10 });
  expect([read.median(), read.beats]).toEqual([68, 1]);
  expect(read.noted()).toEqual({ unit: 'eval_test_ä', step: 7, patience: 10 });
});

test('a run whose input waits for a stopped process ends with its last step saved', async () => {
  const { directory, log, step, seconds, stdout, stderr } = await hungRun('worker');
  expect(seconds).toBeLessThan(LIMIT + 2);
  const first = log.split('\n')[0]!;
  expect(first).toMatch(
    new RegExp(
      `^The run hangs after step ${step}: nothing has finished for [\\d.]+ s ` +
        `\\(the limit is 2 median steps of [\\d.e-]+ s, at least 3 s\\)\\. It is in: input\\.$`,
    ),
  );
  expect(log).toContain('\nMain thread:\n');
  if (process.platform === 'linux') expect(log).toMatch(/Child processes:\n {4}\d+ cat: is stopped/);
  expect(stderr).toContain(`${first} Stacks of its threads are in ${join(directory, 'hang.txt')}.`);
  expect(stdout).toContain(`Saved at step ${step} of 100000; the same command goes on from there.`);
  expect(stateAt(directory, step).length).toBeGreaterThan(0);
  expect(readStatus(directory)).toMatchObject({ state: 'failed', reason: expect.stringContaining(first) });
}, 120_000);
