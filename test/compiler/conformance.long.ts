/** @file TensorFlow.js's own specs on all engines: a fixed part of them passes but for the known failures. */
import { expect, test, vi } from 'vitest';
import { conform } from '../../scripts/conformance.js';
import { unlistedFailures } from '../../scripts/conformancePage.js';
import { isShort, tries } from '../faults/campaign.js';
import { engines } from './engines.js';

/** A run tries one of as many parts of the specs. */
const PARTS = tries(5, 48);

// Programs of one operation each: compiling them takes most of the time.
if (isShort) vi.stubEnv('LUTHIER_CFLAGS', '-O0');

test('specs pass that pass on the backend of tfjs', async () => {
  const here = engines.flatMap(([, { engine, available }]) => (available ? engine : []));
  const results = await conform({ engines: here as ('onnx' | 'native')[], part: 0, parts: PARTS });
  for (const engine of here) {
    const own = results.filter((result) => result.engine === engine);
    expect(own.length).toBeGreaterThan(3000 / PARTS);
  }
  expect(unlistedFailures(results)).toEqual([]);
});
