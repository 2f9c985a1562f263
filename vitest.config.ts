/** @file Where the tests are, which of them share processes, and how long one may take on a slow machine with two cores. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { longFirst } from './test/longFirst.js';

const include = ['test/**/*.test.ts'];
/** Those that replace modules, ask what is there before a backend is loaded, or send themselves signals, are alone. */
const alone = [
  'test/compiler/trace/tracing.test.ts',
  'test/hparams/graphs/dot.test.ts',
  'test/programs/taskState.test.ts',
  'test/system/signals.test.ts',
];

/** Where the tests are that take long: they start processes, compile C, or run through a thousand random graphs. */
const long =
  /\/test\/(docs|tools|review|programs|runs|inputs\/ahead|compiler\/(native\/runtime|rules)|hparams\/(codegen|diff|documents))/;

export default defineConfig({
  test: {
    // Nothing asserts a time: this only ends what hangs, however busy the machine is.
    testTimeout: 600_000,
    // One a core: most tests wait for processes of their own half of the time.
    maxWorkers: '100%',
    hookTimeout: 600_000,
    sequence: { sequencer: longFirst(long) },
    globalSetup: [
      'test/callersEnvironment.ts',
      'test/temporaryFolders.ts',
      'test/rooms.ts',
      'test/threads.ts',
      'test/runtime.ts',
    ],
    env: {
      // Compiled programs of tests are no one's but the tests'.
      XDG_CACHE_HOME: fileURLToPath(new URL('./out/cache', import.meta.url)),
      // Compiled with -O2, as the long run does, they would take a tenth of the time of all tests.
      LUTHIER_CFLAGS: '-O0',
      // Some tests call ONNX Runtime themselves.
      ORT_DISABLE_TELEMETRY: '1',
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include,
          exclude: alone,
          isolate: false,
          setupFiles: ['test/seeded.ts', 'test/freshModules.ts'],
        },
      },
      { extends: true, test: { name: 'alone', include: alone, setupFiles: ['test/seeded.ts'] } },
    ],
  },
});
