/** @file Tests of files that try one kind of change after the other, each by itself. */
import { test } from 'vitest';
import { seed, tries } from '../faults/campaign.js';

/** Declares such tests: all of a file, or with SHORT=1 one in so many. */
export function kinds(inShort = 12): (name: string, body: () => Promise<void>) => void {
  const every = tries(1, inShort);
  let declared = 0;
  return (name, body) => test.skipIf(declared++ % every !== seed % every)(name, body);
}
