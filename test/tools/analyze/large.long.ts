/** @file Memory that an analysis takes, of a model that no machine here could hold. */
import { expect, test } from 'vitest';
import { startCommand } from '../../command.js';

test('175 billion parameters take no memory', async () => {
  const { finished } = startCommand([], undefined, 'test/tools/analyze/largeProgram.ts');
  const { code, stdout, stderr } = await finished;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { parameters, maxRssKilobytes } = JSON.parse(stdout);
  // Sinusoids instead of a table of positions.
  expect(parameters).toBe(50257 * 12288 + 96 * (12 * 12288 ** 2 + 13 * 12288) + 2 * 12288);
  // The masks of its layers alone would be 1.6 GB, its weights 700 GB. Node with the library takes 0.2.
  expect(maxRssKilobytes).toBeLessThan(600_000);
});
