/** @file Trials of mutants: which test notices each, kept so that one that was tried is not tried again. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../src/files/index.js';
import type { Mutant } from './candidates.js';
import { closestTests, importsOf } from './closestTests.js';
import type { Workplace } from './workplace.js';

/** How a trial ended. `by` is the test, `types`, or undefined if nothing noticed the mutant. */
export interface Verdict {
  readonly by?: string;
  /** Test files that passed. */
  readonly passed: readonly string[];
  /** The test file that the limit cut off. */
  readonly unfinished?: string;
}

/** Test files that are asked at most. */
const most = 40;
/** A test file that takes this many times as long as without the mutant hangs. */
const hanging = 4;

/** Tests of the C runtime: results of programs, on all kernels. */
const runtimeTests = /^test\/compiler\/(native|ops|cases|random)\/(runtime\/)?[^/]*\.test\.ts$/;

/** What a run of all tests wrote about its test files. */
interface LastRun {
  readonly testResults: readonly {
    readonly name: string;
    readonly startTime: number;
    readonly endTime: number;
  }[];
}

/** How long each test file took in the last run of `npm test`, if there was one. */
function secondsOfLastRun(root: string): Map<string, number> {
  const report = join(root, 'out/vitest.json');
  if (!existsSync(report)) return new Map();
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as LastRun;
  return new Map(
    testResults.map(({ name, startTime, endTime }) => [
      name.replace(/^.*?\/(?=test\/)/, ''),
      (endTime - startTime) / 1000,
    ]),
  );
}

export class Trials {
  private readonly imports: ReturnType<typeof importsOf>;
  private readonly usual: ReadonlyMap<string, number>;
  private readonly verdicts: Map<string, Verdict>;
  /**
   * Seconds of test files that passed, without a mutant or with one that they do not notice; undefined if they fail without
   * any.
   */
  private readonly whole = new Map<string, number | undefined>();

  constructor(
    private readonly root: string,
    private readonly memory: string,
    private readonly seconds: number,
  ) {
    this.imports = importsOf(root);
    this.usual = secondsOfLastRun(root);
    const kept = existsSync(memory) ? (JSON.parse(readFileSync(memory, 'utf8')) as [string, Verdict][]) : [];
    this.verdicts = new Map(kept);
  }

  /** Plants the mutant in a workplace, and asks the closest tests. */
  async verdictOn(mutant: Mutant, workplace: Workplace): Promise<Verdict> {
    const tests = this.testsOf(mutant);
    const key = this.keyOf(mutant, tests);
    const known = this.verdicts.get(key);
    if (known !== undefined) return known;
    const verdict = await this.tried(mutant, tests, workplace);
    this.verdicts.set(key, verdict);
    writeWhole(this.memory, JSON.stringify([...this.verdicts]));
    return verdict;
  }

  private testsOf({ file }: Mutant): string[] {
    return file.endsWith('.ts')
      ? closestTests(file, this.imports, most, this.usual)
      : [...this.imports.keys()]
          .filter((test) => runtimeTests.test(test))
          .sort((a, b) => Number(b.includes('/runtime/')) - Number(a.includes('/runtime/')));
  }

  private keyOf(mutant: Mutant, tests: readonly string[]): string {
    const hash = createHash('sha256').update(JSON.stringify([mutant, this.seconds]));
    for (const file of [mutant.file, ...tests]) hash.update(readFileSync(join(this.root, file))).update(file);
    return hash.digest('hex');
  }

  private async tried(mutant: Mutant, tests: readonly string[], workplace: Workplace): Promise<Verdict> {
    const asked = tests.filter((test) => !this.whole.has(test) || this.whole.get(test) !== undefined);
    const answer = await workplace.withMutant(mutant, () => workplace.ask(asked, this.seconds));
    const passed = [...answer.passed.keys()];
    for (const [file, seconds] of answer.passed) if (!this.whole.has(file)) this.whole.set(file, seconds);
    const { failure, unfinished } = answer;
    if (failure !== undefined) {
      if ((await this.secondsOf(failure.file, workplace)) === undefined)
        return this.tried(mutant, tests, workplace);
      return { by: `${failure.file}: ${failure.test}`, passed };
    }
    if (unfinished !== undefined && unfinished.file !== '') {
      const usual = await this.secondsOf(unfinished.file, workplace);
      if (usual !== undefined && unfinished.seconds > hanging * usual + 10)
        return { by: `${unfinished.file} hangs`, passed };
    }
    const agree =
      !mutant.file.endsWith('.ts') || (await workplace.withMutant(mutant, () => workplace.typesAgree()));
    if (!agree) return { by: 'types', passed };
    return { passed, ...(unfinished && { unfinished: unfinished.file }) };
  }

  /** How long a test file takes without a mutant; undefined if it fails. */
  private async secondsOf(file: string, workplace: Workplace): Promise<number | undefined> {
    if (!this.whole.has(file)) {
      const { passed, failure } = await workplace.ask([file], 600);
      this.whole.set(file, failure ? undefined : passed.get(file));
    }
    return this.whole.get(file);
  }
}
