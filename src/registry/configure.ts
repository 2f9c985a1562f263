/** @file Makes an experiment's configs: constants from the command line first, then its methods, then overrides of configs. */
import { type Config, ConfigError, didYouMean, setPath } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { UsageError } from './errors.js';
import { checkRequired, constantsOf, type Experiment, instantiate } from './experiment.js';
import type { ResolvedExperiment } from './resolve.js';

/** A `--set path=value`: its path, its value's text, and the flag as written. */
export interface SetOverride {
  readonly path: string;
  readonly text: string;
  readonly origin: string;
}

/** An experiment with its configs as they will be built. */
export interface ConfiguredExperiment {
  readonly name: string;
  readonly experiment: Experiment;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
}

const roots = ['task', 'datasets', 'decodeDatasets'] as const;

function isConfigPath(path: string): boolean {
  return /^(task|datasets|decodeDatasets)(?:[.[]|$)/.test(path);
}

function checkConstantNames(cls: Function, overrides: readonly SetOverride[]): void {
  const names = Object.keys(constantsOf(cls));
  for (const { path, origin } of overrides) {
    if (names.includes(path)) continue;
    const head = /^[^.[]*/.exec(path)![0];
    throw new UsageError(
      `${origin}: ${cls.name} has no constant '${path}'.${didYouMean(head, [...names, ...roots])} ` +
        `Its constants are: ${names.sort().join(', ') || 'none'}; ` +
        `paths into its configs begin with task., datasets[0]. or decodeDatasets[0].`,
    );
  }
}

function checkNames(experiment: Experiment, what: string, configs: readonly Config<BaseInput>[]): void {
  const seen = new Set<string>();
  for (const config of configs) {
    const name = config.name ?? (config.isTraining ? 'train' : 'input');
    if (seen.has(name)) {
      throw new ConfigError(`${experiment.constructor.name}.${what}: two inputs are named '${name}'.`);
    }
    seen.add(name);
  }
}

/**
 * Makes the experiment and its configs. Constants are set before the class's fields are, so that fields computed
 * from a constant see the new value; config overrides come last, in the order of the command line.
 *
 * @throws UsageError or ConfigError for an unknown constant or path, a value that does not fit, a constant that
 *   nothing sets, or two inputs with one name.
 */
export function configure(
  resolved: ResolvedExperiment,
  overrides: readonly SetOverride[] = [],
): ConfiguredExperiment {
  const constants = overrides.filter((o) => !isConfigPath(o.path));
  checkConstantNames(resolved.cls, constants);
  const experiment = instantiate(
    resolved.cls,
    constants.map(({ path, text, origin }) => ({ name: path, text, origin })),
  );
  checkRequired(experiment);
  const made = {
    task: experiment.task(),
    datasets: experiment.datasets(),
    decodeDatasets: experiment.decodeDatasets(),
  };
  for (const { path, text, origin } of overrides) {
    if (isConfigPath(path)) setPath(made, path, text, origin);
  }
  checkNames(experiment, 'datasets', made.datasets);
  checkNames(experiment, 'decodeDatasets', made.decodeDatasets);
  experiment.validate();
  return { name: resolved.name, experiment, ...made };
}
