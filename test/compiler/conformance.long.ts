/** @file TensorFlow.js's own specs on each engine: a fixed part of them passes but for the known failures. */
import { expect, test, vi } from 'vitest';
import { conform } from '../../scripts/conformance.js';
import { unlistedFailures } from '../../scripts/conformancePage.js';
import { isShort, tries } from '../faults/campaign.js';
import { engines } from './engines.js';

/** A run tries one of as many parts of the specs. */
const PARTS = tries(5, 24);

// Programs of one operation each: compiling them takes most of the time.
if (isShort) vi.stubEnv('LUTHIER_CFLAGS', '-O0');

test.each(engines)('%s', async (_, { engine, available }) => {
  if (!available) return;
  const results = await conform({ engines: [engine as 'onnx' | 'native'], part: 0, parts: PARTS });
  expect(results.length).toBeGreaterThan(3000 / PARTS);
  expect(unlistedFailures(results)).toEqual([]);
});
