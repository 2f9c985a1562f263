/** @file Test runs that ask about a mutant: one file after another in the order of TESTS, until a test fails. */
import { relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestSpecification } from 'vitest/node';
import all from '../../vitest.config.js';

const order = new Map(process.env.TESTS!.split(',').map((file, index) => [file, index]));
const place = ({ moduleId }: TestSpecification): number => order.get(relative(process.cwd(), moduleId))!;

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.sort((a, b) => place(a) - place(b));
  }
}

/** Lines for the process that waits: `started FILE`, `failed FILE: TEST`, `passed FILE`. */
const progress: Reporter = {
  onTestModuleStart: ({ relativeModuleId }) => console.log(`started ${relativeModuleId}`),
  onTestCaseResult(test) {
    if (test.result().state === 'failed')
      console.log(`failed ${test.module.relativeModuleId}: ${test.fullName}`);
  },
  onTestModuleEnd(module) {
    console.log(`${module.ok() ? 'passed' : 'failed'} ${module.relativeModuleId}`);
  },
};

export default defineConfig({
  ...all,
  test: {
    ...all.test,
    bail: 1,
    maxWorkers: 1,
    reporters: [progress],
    sequence: { sequencer: InOrder },
    // Files change by one mutant at a time: all others are translated once.
    experimental: { fsModuleCache: true, fsModuleCachePath: 'out/translated' },
  },
});
