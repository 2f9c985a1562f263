/** @file The board of a run, on which the watchdog's thread reads its progress. */
import { expect, test } from 'vitest';
import { Board } from '../../../src/programs/watchdog/board.js';

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
