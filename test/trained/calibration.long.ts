/** @file Weights in 4 bits that were calibrated by a run's data for training: nearer to the run that they were made of. */
import { expect, test } from 'vitest';
import { oneProcess, temporaryDirectory } from '../command.js';
import { tinyRun } from './tinyRun.js';

const luthier = oneProcess('src/tools/commandLine.ts');

test('batches of the data for training make weights fit each other', async () => {
  const { directory } = await tinyRun();
  const report = async (...flags: string[]) => {
    const to = `--to=${temporaryDirectory()}`;
    const { stdout, stderr, code } = await luthier([
      ...['quantize', directory, to, '--bits=4', '--format=json', ...flags],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };
  const [plain, calibrated] = [await report(), await report('--calibration=8')];
  expect(plain.calibrated).toBe(0);
  expect(calibrated.calibrated).toBeGreaterThan(0.8 * calibrated.weights);
  expect(calibrated.bytes).toEqual(plain.bytes);
  expect(calibrated.quality.divergence).toBeLessThan(0.7 * plain.quality.divergence);
});
