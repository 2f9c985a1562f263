/** @file The job as each of its ranks runs it. */
import { ConfigError, copyWith } from '../../hparams/index.js';
import type { JobOptions, JobRanks } from '../../runs/index.js';
import { checkSameJob } from './agreement.js';

/**
 * A job with a sub-batch for each rank, unless the task has its own: ranks together compute what one process computes from
 * the same sub-batches.
 *
 * @throws UsageError where ranks run different jobs; ConfigError for an engine that ranks have not
 */
export async function optionsOfRank(options: JobOptions, ranks: JobRanks): Promise<JobOptions> {
  await checkSameJob(ranks, options);
  const { task, device, engine, debug } = options;
  if (device === 'gpu' || engine === 'eager' || debug === 'eager')
    throw new ConfigError(
      `${ranks.count} ranks train compiled steps on the CPU: leave out --device=gpu, --engine=eager and --debug=eager.`,
    );
  if (task.train.numSubBatches > 1) return options;
  const train = copyWith(task.train, { numSubBatches: ranks.count });
  return { ...options, task: copyWith(task, { train }) };
}
