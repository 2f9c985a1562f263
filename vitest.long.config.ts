/** @file What takes long: injected faults, random cases by the thousand, kernels under sanitizers, commands on whole projects. `npm run test:long` runs it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { defineConfig } from 'vitest/config';
import { inTurn } from './test/inTurn.js';
import { longFirst } from './test/longFirst.js';

/** Suites of every day that have this import. */
function importing(line: RegExp): string[] {
  return globSync('test/**/*.test.ts').filter((file) => line.test(readFileSync(file, 'utf8')));
}

/** Suites that repeat what they do less often in the run of every day. SHORT=1 would repeat them no more often. */
const repeated =
  process.env.SHORT === '1'
    ? []
    : importing(/^import \{.*\b(runs|firstOf)\b.*\} from '.*\/faults\/campaign\.js';$/m);

/** Suites of every day with tests that are run here alone. */
const shared = importing(/^import \{ longTest \} from /m);

/** Small files that take long, or wait. */
const long =
  /\/test\/(package|workflowRuns|faults\/(interruptions|programs)|programs\/(sweepParallel|resumeEngines)|compiler\/onnx\/telemetry)\.long/;

/** All of them; where TURN=n is said, half. */
const suites = [...globSync('test/**/*.long.ts'), ...repeated, ...shared];

export default defineConfig({
  test: {
    include: inTurn(suites, process.env.TURN),
    allowOnly: true,
    // A campaign ends by its own counts; this only ends one that hangs.
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
    maxWorkers: '100%',
    sequence: { sequencer: longFirst(long) },
    globalSetup: [
      'test/callersEnvironment.ts',
      'test/temporaryFolders.ts',
      'test/rooms.ts',
      'test/threads.ts',
      'test/runtime.ts',
    ],
    setupFiles: ['test/seeded.ts'],
    env: {
      XDG_CACHE_HOME: fileURLToPath(new URL('./out/cache', import.meta.url)),
      ORT_DISABLE_TELEMETRY: '1',
      LONG: '1',
    },
  },
});
