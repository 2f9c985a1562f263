/** @file The job as each of its ranks runs it. */
import { ConfigError, copyWith } from '../../hparams/index.js';
import type { JobOptions, JobRanks } from '../../runs/index.js';
import { checkSameJob } from './agreement.js';
import { meshOfJob } from './jobMesh.js';

/**
 * A job with its mesh, and with a sub-batch for each share of a batch's rows, unless the task has its own: ranks together
 * compute what one process computes from the same sub-batches.
 *
 * @throws UsageError where ranks run different jobs, or the mesh is of another number of devices; ConfigError for an engine
 *   that ranks have not
 */
export async function optionsOfRank(options: JobOptions, ranks: JobRanks): Promise<JobOptions> {
  await checkSameJob(ranks, options);
  const { task, device, engine, debug } = options;
  if (device === 'gpu' || engine === 'eager' || debug === 'eager')
    throw new ConfigError(
      `${ranks.count} ranks train compiled steps on the CPU: leave out --device=gpu, --engine=eager and --debug=eager.`,
    );
  const mesh = meshOfJob(task, ranks.count);
  const { count } = mesh.shareOf(ranks.rank);
  if (task.train.numSubBatches > 1) return { ...options, mesh };
  const train = copyWith(task.train, { numSubBatches: count });
  return { ...options, mesh, task: copyWith(task, { train }) };
}
