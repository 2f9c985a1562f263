/** @file Tests that take long, in the files of those of every day whose helpers they share. */
import { test } from 'vitest';

/** A test of `npm run test:long` alone, which runs no other test of the file. */
export const longTest = (name: string, act: () => Promise<void> | void): void => {
  // biome-ignore lint/suspicious/noFocusedTests: the tests of every day have run before.
  if (process.env.LONG === '1') test.only(name, act);
};
