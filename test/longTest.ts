/** @file Tests that take long, in the files of those of every day whose helpers they share. */
import { test } from 'vitest';

/**
 * A test of `npm run test:long` alone, which runs no other test of the file.
 *
 * @param isPossible whether what it needs is here, such as a C compiler: it is skipped without.
 */
export function longTest(name: string, act: () => Promise<void> | void, isPossible = true): void {
  if (process.env.LONG !== '1') return;
  // The tests of every day have run before.
  (isPossible ? test.only : test.skip)(name, act);
}
