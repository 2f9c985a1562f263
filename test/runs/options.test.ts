/** @file Options of jobs: whose checkpoint is meant. */
import { expect, test } from 'vitest';
import { checkpointDirectory, isOfOtherRun, isOfOwnRun } from '../../src/runs/options.js';

test.each([
  [undefined, false, false],
  [0, false, true],
  [12, false, true],
  ['best', false, true],
  ['out/best', true, false],
  ['12', true, false],
  ['', true, false],
] as const)('checkpoint %j: of another run %s, of the own run %s', (checkpoint, other, own) => {
  expect([isOfOtherRun(checkpoint), isOfOwnRun(checkpoint)]).toEqual([other, own]);
});

test('checkpoints are in a folder of the job', () => {
  expect(checkpointDirectory({ jobLogDir: 'out/job' } as Parameters<typeof checkpointDirectory>[0])).toBe(
    'out/job/checkpoints',
  );
});
