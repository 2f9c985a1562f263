/** @file Where the tests are, and how long one may take on a slow machine with two cores. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Tests that start real processes take seconds; nothing asserts a time.
    testTimeout: 120_000,
    // One a core: most tests wait for processes of their own half of the time.
    maxWorkers: '100%',
    hookTimeout: 120_000,
    // Compiled programs of tests are no one's but the tests'.
    env: { XDG_CACHE_HOME: fileURLToPath(new URL('./out/cache', import.meta.url)) },
  },
});
