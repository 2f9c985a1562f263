/** @file Parameters and problems of experiments whose tasks are built. */
import type { FoundExperiment } from '../../registry/scan.js';
import { Progress } from '../terminalOutput.js';
import type { Checked } from '../validate/checkAll.js';

/** What came of building an experiment's task. */
export interface Built {
  readonly parameters?: number;
  /** What keeps it from being built: what is wrong, or what it needs. */
  readonly problems: readonly string[];
}

const timeout = 120;

/** Builds the tasks of all that are no abstract families, in processes of their own. */
export async function buildAll(
  experiments: readonly FoundExperiment[],
): Promise<ReadonlyMap<FoundExperiment, Built>> {
  const concrete = experiments.filter(({ abstract }) => !abstract);
  const progress = new Progress(concrete.length);
  const done = ({ found }: Checked): void => progress.add(found.name);
  // It takes what builds models: not what a list of names waits for.
  const [{ checkAll }, { reasonsOf, resultOf }] = await Promise.all([
    import('../validate/checkAll.js'),
    import('../validate/validateReport.js'),
  ]);
  const checked = await checkAll(concrete, { level: 'task', changes: [], lenient: false, timeout, done });
  progress.end();
  return new Map(
    checked.map((each) => {
      const result = resultOf(each);
      const { parameters } = result;
      return [each.found, { ...(parameters !== undefined && { parameters }), problems: reasonsOf(result) }];
    }),
  );
}
