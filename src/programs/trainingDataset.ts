/** @file Which of an experiment's datasets trains. */
import { type Config, ConfigError } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';

/** The one dataset that trains. @throws ConfigError where there is none, or several */
export function trainingDataset({
  name,
  datasets,
}: {
  readonly name: string;
  readonly datasets: readonly Config<BaseInput>[];
}): Config<BaseInput> {
  const training = datasets.filter((dataset) => dataset.isTraining);
  if (training.length === 1) return training[0]!;
  const found = training.map((d) => `'${d.name ?? 'train'}'`).join(', ') || 'none';
  throw new ConfigError(`${name}: datasets() must have one dataset with isTraining true, it has ${found}.`);
}
