/** @file Tests that take long, in the files of those of every day whose helpers they share. */
import { test } from 'vitest';

/**
 * A test of `npm run test:long` alone, which runs no other test of the file.
 *
 * @param hasCompiler whether there is a C compiler, where the test needs one: it is skipped, and says so, without.
 */
export function longTest(name: string, act: () => Promise<void> | void, hasCompiler = true): void {
  if (process.env.LONG !== '1') return;
  // biome-ignore lint/suspicious/noFocusedTests: the tests of every day have run before.
  test.only(name, async (context) => {
    if (!hasCompiler) context.skip('There is no C compiler: `cc` or $CC.');
    await act();
  });
}
