/** @file TensorFlow.js's own specs on each engine: a fixed part of them passes but for the known failures. */
import { expect, test } from 'vitest';
import { conform } from '../../scripts/conformance.js';
import { unlistedFailures } from '../../scripts/conformancePage.js';
import { engines } from './engines.js';

/** Parts of the specs that fit the time of a run; compiling C takes longer. */
const PARTS = { onnx: 5, native: 20 } as const;

test.each(engines)('%s', async (_, { engine, available }) => {
  if (!available) return;
  const name = engine as keyof typeof PARTS;
  const results = await conform({ engines: [name], part: 0, parts: PARTS[name] });
  expect(results.length).toBeGreaterThan(3000 / PARTS[name]);
  expect(unlistedFailures(results)).toEqual([]);
});
