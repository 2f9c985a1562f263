/** @file Schedules of pipelines: turns in which devices work, and wait. */
import { expect, test } from 'vitest';
import { deviceTurns, iterationsOf } from '../../src/layers/pipelineSchedule.js';

test.each([
  // GPipe's bubble: stages - 1 of microbatches + stages - 1 iterations.
  [{ numStages: 4, numMicrobatches: 8, circularRepeat: 1 }, 4, { worked: 8, elapsed: 11 }],
  [{ numStages: 4, numMicrobatches: 8, circularRepeat: 3 }, 4, { worked: 24, elapsed: 27 }],
  // Two stages a device: the second one begins two iterations later, and both have one stage idle in the first and the last.
  [{ numStages: 4, numMicrobatches: 8, circularRepeat: 1 }, 2, { worked: 16, elapsed: 20 }],
  [{ numStages: 4, numMicrobatches: 8, circularRepeat: 1 }, 1, { worked: 32, elapsed: 32 }],
  [{ numStages: 3, numMicrobatches: 2, circularRepeat: 1 }, 2, { worked: 6, elapsed: 6 }],
])('%o on %i devices', (sizes, devices, turns) => {
  expect(deviceTurns(sizes, devices)).toEqual(turns);
  if (devices === sizes.numStages) expect(turns.elapsed).toBe(iterationsOf(sizes));
});
