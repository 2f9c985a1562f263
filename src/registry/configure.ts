/** @file Makes an experiment's configs: constants from the command line first, then its methods, then what edits the configs. */
import {
  type Config,
  ConfigError,
  didYouMean,
  formatPath,
  setPath,
  unsetPath,
  withOrigin,
} from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { configRoots, type ExperimentConfigs, isConfigPath, makeConfigs } from './configs.js';
import { UsageError } from './errors.js';
import {
  type ConstantOverride,
  checkRequired,
  constantsOf,
  type Experiment,
  instantiate,
} from './experiment.js';
import { applyFiddler } from './fiddlers.js';
import { readOverrideFile } from './files.js';
import type { FileOverride, Override, SetOverride, UnsetOverride, ValueOverride } from './overrides.js';
import type { ResolvedExperiment } from './resolve.js';

/** An experiment with its configs as they will be built. */
export interface ConfiguredExperiment {
  readonly name: string;
  readonly experiment: Experiment;
  /** The configs below, as what flags and fiddlers wrote to. */
  readonly configs: ExperimentConfigs;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
}

/** An override that has a path. */
type PathOverride = SetOverride | ValueOverride | UnsetOverride;
/** An override when files are read. */
type Change = Exclude<Override, FileOverride> | ValueOverride;

/** The text of an override's path. */
function pathText({ path }: PathOverride): string {
  return typeof path === 'string' ? path : formatPath(path);
}

function toConstant(cls: Function, override: PathOverride): ConstantOverride {
  const { origin } = override;
  const name = pathText(override);
  const names = Object.keys(constantsOf(cls));
  if (!names.includes(name)) {
    const head = /^[^.[]*/.exec(name)![0];
    throw new UsageError(
      `${origin}: ${cls.name} has no constant '${name}'.${didYouMean(head, [...names, ...configRoots])} ` +
        `Its constants are: ${names.sort().join(', ') || 'none'}; ` +
        `paths into its configs begin with task., datasets[0]. or decodeDatasets[0].`,
    );
  }
  if (override.kind === 'set') return { name, origin, text: override.text };
  if (override.kind === 'value') return { name, origin, value: override.value };
  return { name, origin, toDefault: true };
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

/** What the experiment's methods return, each noted as the method's. */
function configsOf(experiment: Experiment): ExperimentConfigs {
  const configs = makeConfigs({});
  for (const root of configRoots) {
    const made = experiment[root]();
    withOrigin(`${experiment.constructor.name}.${root}()`, () => Object.assign(configs, { [root]: made }));
  }
  return configs;
}

function apply(configs: ExperimentConfigs, override: Change, resolved: ResolvedExperiment): void {
  const { origin } = override;
  if (override.kind === 'set') setPath(configs, override.path, override.text, origin);
  else if (override.kind === 'value') setPath(configs, override.path, override.value, origin);
  else if (override.kind === 'unset') unsetPath(configs, override.path, origin);
  else applyFiddler(configs, override, resolved);
}

/**
 * Makes the experiment and its configs. Two passes over the overrides, each in the order of the command line: first
 * those of constants, for fields of the class that are computed from a constant, and the methods, must see the new value;
 * then, on what the methods returned, those of configs and the fiddlers.
 *
 * @throws UsageError or ConfigError for an unknown constant, path or fiddler, a value that does not fit, a constant
 *   that nothing sets, or two inputs with one name.
 */
export function configure(
  resolved: ResolvedExperiment,
  overrides: readonly Override[] = [],
): ConfiguredExperiment {
  const changes = overrides.flatMap((each): Change[] =>
    each.kind === 'file' ? readOverrideFile(each) : [each],
  );
  const constants: ConstantOverride[] = [];
  const edits: Change[] = [];
  for (const change of changes) {
    if (change.kind === 'fiddler' || isConfigPath(pathText(change))) edits.push(change);
    else constants.push(toConstant(resolved.cls, change));
  }
  const experiment = instantiate(resolved.cls, constants);
  checkRequired(experiment);
  const configs = configsOf(experiment);
  for (const edit of edits) apply(configs, edit, resolved);
  const { task } = configs;
  const [datasets, decodeDatasets] = [[...configs.datasets], [...configs.decodeDatasets]];
  checkNames(experiment, 'datasets', datasets);
  checkNames(experiment, 'decodeDatasets', decodeDatasets);
  experiment.validate();
  return { name: resolved.name, experiment, configs, task, datasets, decodeDatasets };
}
