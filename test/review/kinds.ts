/** @file Tests of files that try one kind of change after the other, each by itself. */
import { test } from 'vitest';
import { seed, tries } from '../faults/campaign.js';

/** Declares such tests: all of a file, or every twelfth one with SHORT=1. */
export function kinds(): (name: string, body: () => Promise<void>) => void {
  const every = tries(1, 12);
  let declared = 0;
  return (name, body) => test.skipIf(declared++ % every !== seed % every)(name, body);
}
