/** @file Parameters and problems of experiments whose tasks are built. */
import type { FoundExperiment, Scan } from '../../registry/names/index.js';
import { Progress } from '../../system/text/index.js';
import type { Checked } from '../validate/checkAll.js';

/** Result of building an experiment's task. */
export interface Built {
  readonly parameters?: number;
  /** Errors, or missing inputs, that prevent the build. */
  readonly problems: readonly string[];
}

const timeout = 120;

/** Of a process that loads modules. */
const gigabytes = 4;

/** A scan with the experiments that only loading tells. */
export async function loaded(found: Scan): Promise<Scan> {
  if (found.unclassified.length === 0) return found;
  const { withLoaded } = await import('../../review/index.js');
  return withLoaded(found, { seconds: timeout, gigabytes });
}

/** Builds the tasks of all concrete experiments, in separate processes. */
export async function buildAll(
  experiments: readonly FoundExperiment[],
): Promise<ReadonlyMap<FoundExperiment, Built>> {
  const concrete = experiments.filter(({ abstract }) => !abstract);
  const progress = new Progress(concrete.length);
  const done = ({ found }: Checked): void => progress.add(found.name);
  // Loaded late, as a plain list does not build models.
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
