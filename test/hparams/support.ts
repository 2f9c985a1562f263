/** @file What tests of configs share. */
import { expect } from 'vitest';
import { ConfigError } from '../../src/hparams/index.js';

/** The message of the ConfigError that `action` throws. */
export function messageOf(action: () => unknown): string {
  let error: unknown;
  try {
    action();
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  return (error as Error).message;
}
