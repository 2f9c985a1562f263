/** @file The directory of a run in the place of an experiment: its recorded configs, and its weights to start from. */
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { Experiment } from '../experiment/index.js';
import { deepCopy } from '../hparams/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { CheckpointLoadingRules } from '../tasks/index.js';
import { readRunDocument, startLora } from '../trained/index.js';
import { fiddler } from './commandFunctions.js';

/** `--fiddler lora(rank=8)`: training changes low-rank factors beside the weights, and nothing else. */
const lora = fiddler(
  {
    rank: z.int().positive().default(8).describe('Rank of the changes.'),
    alpha: z
      .number()
      .positive()
      .nullable()
      .default(null)
      .describe('Changes are multiplied by alpha / rank; null: by 1.'),
    targets: z.enum(['all', 'attention', 'mlp']).default('all').describe('The projections that are changed.'),
  },
  ({ task }, { rank, alpha, targets }) =>
    startLora(task, { rank, targets, ...(alpha !== null && { alpha }) }),
);

/**
 * The experiment that a run's directory records. A run of another directory starts from its weights.
 *
 * @param jobLogDir of the run to be. @throws as `readRunDocument`
 */
export async function recordedExperiment(
  directory: string,
  jobLogDir: string | undefined,
): Promise<ResolvedExperiment> {
  const document = await readRunDocument(directory);
  const { name, task, datasets, decodeDatasets, moduleUrl } = document;
  const isSame = jobLogDir !== undefined && resolve(jobLogDir) === resolve(directory);
  class Recorded extends Experiment {
    override task() {
      const copied = deepCopy(task);
      if (!isSame)
        copied.train.initFromCheckpoint = [CheckpointLoadingRules.config({ checkpoint: directory })];
      return copied;
    }

    override datasets() {
      return datasets.map((dataset) => deepCopy(dataset));
    }

    override decodeDatasets() {
      return decodeDatasets.map((dataset) => deepCopy(dataset));
    }

    override evalPrograms() {
      return document.evalPrograms?.map((program) => deepCopy(program)) ?? null;
    }

    override decodePrograms() {
      return document.decodePrograms?.map((program) => deepCopy(program)) ?? null;
    }

    override executor() {
      return document.executor ? deepCopy(document.executor) : null;
    }

    override inputSpecsProvider() {
      return document.inputSpecsProvider ? deepCopy(document.inputSpecsProvider) : null;
    }
  }
  const file = join(directory, 'experiment.json');
  return { name, file, cls: Recorded, moduleUrl, exports: { lora } };
}
