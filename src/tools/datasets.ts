/** @file An experiment's datasets, by their names or paths, and their batches. */
import { nonEmpty } from '../cli/commandLine/index.js';
import type { ConfiguredExperiment } from '../cli/index.js';
import { type Config, didYouMean, isEqual } from '../hparams/index.js';
import { type BaseInput, type Batch, type InputSource, untilEnd } from '../inputs/index.js';
import { UsageError } from '../system/text/index.js';

/** A dataset of an experiment. */
export interface NamedDataset {
  /** `datasets[0]`, `decodeDatasets[0]`. */
  readonly path: string;
  /** As its programs are named. */
  readonly name: string;
  readonly config: Config<BaseInput>;
}

/** The flag whose value `findDataset` takes. */
export const datasetFlag = {
  ...{ key: 'dataset', value: 'NAME', parse: nonEmpty },
  about: 'Name of the dataset, or its path: datasets[1], decodeDatasets[0]. Default: the training dataset.',
};

function datasetsOf(configured: ConfiguredExperiment): NamedDataset[] {
  return (['datasets', 'decodeDatasets'] as const).flatMap((root) =>
    configured[root].map((config, i) => ({
      path: `${root}[${i}]`,
      name: config.name ?? (config.isTraining ? 'train' : 'input'),
      config,
    })),
  );
}

/**
 * The dataset of a name or a path; by default, the training dataset, else the first.
 *
 * @throws UsageError if there is none, or several of the name
 */
export function findDataset(configured: ConfiguredExperiment, wanted: string | undefined): NamedDataset {
  const all = datasetsOf(configured);
  const shown = all.map(({ name, path }) => `${name} (${path})`).join(', ');
  if (all.length === 0) throw new UsageError(`${configured.name} has no datasets.`);
  if (wanted === undefined) return all.find(({ config }) => config.isTraining) ?? all[0]!;
  const found = all.filter(({ name, path }) => name === wanted || path === wanted);
  const [first] = found;
  if (first !== undefined && found.every(({ config }) => isEqual(config, first.config))) return first;
  if (first !== undefined) {
    const paths = found.map(({ path }) => path).join(', ');
    throw new UsageError(
      `--dataset=${wanted}: ${configured.name} has ${found.length} of this name. Give the path of one: ${paths}.`,
    );
  }
  const names = all.flatMap(({ name, path }) => [name, path]);
  throw new UsageError(
    `--dataset=${wanted}: ${configured.name} has no such dataset.${didYouMean(wanted, names)} It has: ${shown}.`,
  );
}

/** The next batches, without `batchPaddingSize`; fewer than `limit` where the data ends. */
export async function* readBatches(input: InputSource, limit: number): AsyncGenerator<Batch> {
  for (let i = 0; i < limit; i++) {
    const batch = await untilEnd(() => input.getNext());
    if (batch === undefined) return;
    yield batch;
  }
}
