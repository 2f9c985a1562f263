/** @file Random programs with gradients: compiled results equal those of tfjs's cpu backend. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { differentiated, programInputs, stepsArbitrary } from './programs.js';
import { expectCloseToLargest, runOnce } from './support.js';

/** PROGRAMS and SEED in the environment run others than those of every test run. */
const numRuns = Number(process.env.PROGRAMS ?? 150);
const seed = Number(process.env.SEED ?? 20260101);

test('random programs and their gradients agree with the oracle', async () => {
  await fc.assert(
    fc.asyncProperty(stepsArbitrary, async (steps) => {
      const program = differentiated(steps);
      const actual = await runOnce(program as any, programInputs as any);
      const expected = await runOnce(program as any, programInputs as any, { engine: 'eager' });
      expect(actual.length).toBe(expected.length);
      actual.forEach((tensor, i) => {
        expectCloseToLargest(tensor, expected[i]!, `output ${i}`);
      });
    }),
    { numRuns, seed },
  );
});
