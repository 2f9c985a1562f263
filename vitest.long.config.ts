/** @file What takes long: faults that are injected, random programs by the thousand. `npm run test:long` runs it. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.long.ts'],
    // A campaign ends by its own counts; this only ends one that hangs.
    testTimeout: 3_600_000,
    hookTimeout: 120_000,
    maxWorkers: '100%',
    globalSetup: ['test/temporaryFolders.ts'],
    env: { XDG_CACHE_HOME: fileURLToPath(new URL('./out/cache', import.meta.url)) },
  },
});
