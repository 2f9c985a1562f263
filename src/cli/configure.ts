/** @file An experiment's configs: constants from the command line first, then the methods, then edits of the configs. */

import {
  type ConstantOverride,
  checkRequired,
  configRoots,
  constantsOf,
  type Experiment,
  type ExperimentConfigs,
  instantiate,
  isConfigPath,
  makeConfigs,
  oldConstantsOf,
  unreadOverrides,
} from '../experiment/index.js';
import { refusePromise } from '../hparams/errors.js';
import {
  type Assignment,
  applyAssignments,
  type Config,
  ConfigError,
  didYouMean,
  formatPath,
  givenTwice,
  oldNameNotice,
  PresentNames,
  parsePath,
  readConfigFile,
  Section,
  setPath,
  unsetPath,
  withOrigin,
} from '../hparams/index.js';
import { append } from '../hparams/nodes/containers.js';
import type { BaseInput } from '../inputs/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { UsageError } from '../registry/usageError.js';
import type { SingleTask } from '../tasks/index.js';
import { applyFiddler } from './fiddlers.js';
import { asUsage, type Override } from './overrides.js';

/** An experiment with its configs as they will be built. */
export interface ConfiguredExperiment {
  readonly name: string;
  readonly experiment: Experiment;
  /** The configs below, as what flags and fiddlers wrote to. */
  readonly configs: ExperimentConfigs;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
  /** What is suspicious, a line each: constants of the command line that nothing read, old names of fields. */
  readonly warnings: readonly string[];
}

/** What applies an override to the configs. */
type Edit = (configs: ExperimentConfigs) => void;

function checkConstant(cls: Function, name: string, origin: string): void {
  const names = Object.keys(constantsOf(cls));
  if (names.includes(name)) return;
  const head = /^[^.[]*/.exec(name)![0];
  throw new UsageError(
    `${origin}: ${cls.name} has no constant '${name}'.${didYouMean(head, [...names, ...configRoots])} ` +
      `Its constants are: ${names.sort().join(', ') || 'none'}; ` +
      `paths into its configs begin with task., datasets[0]. or decodeDatasets[0].`,
  );
}

/** `constants`, which one flag or one file sets, with their present names; `notify` is told of old ones. */
function withPresentNames(
  constants: readonly ConstantOverride[],
  cls: Function,
  notify: (notice: string) => void,
): ConstantOverride[] {
  const oldNames = oldConstantsOf(cls);
  const given = new Map<string, string>();
  return constants.map((constant) => {
    const { name, origin } = constant;
    const present = Object.hasOwn(oldNames, name) ? oldNames[name]! : name;
    const first = given.get(present) ?? name;
    given.set(present, name);
    if (first !== name) throw new UsageError(`${origin}: ${givenTwice(cls.name, present, first, name)}`);
    if (present !== name) notify(oldNameNotice(origin, cls.name, name, present));
    return { ...constant, name: present };
  });
}

/** The assignments that stand in a record called `constants`, as --dump writes it; others are themselves. */
function opened(assignment: Assignment): readonly Assignment[] {
  const { path, value, place } = assignment;
  if (path.length !== 1 || path[0] !== 'constants') return [assignment];
  if (value instanceof Section) return value.assignments;
  return Object.entries(value as object).map(([name, part]) => ({ path: [name], value: part, place }));
}

/** Whether an assignment of a file is to the configs, not to a constant. */
function isEdit({ path: [root] }: Assignment): boolean {
  return root === undefined || (configRoots as readonly unknown[]).includes(root);
}

/** Tells constants and edits of the configs apart, each in the order of the command line. */
function sorted(
  overrides: readonly Override[],
  resolved: ResolvedExperiment,
  notify: (notice: string) => void,
): { constants: ConstantOverride[]; edits: Edit[] } {
  const constants: ConstantOverride[] = [];
  const edits: Edit[] = [];
  for (const override of overrides) {
    const { origin } = override;
    const addConstants = (added: readonly ConstantOverride[]) =>
      append(constants, withPresentNames(added, resolved.cls, notify));
    if (override.kind === 'fiddler') edits.push((configs) => applyFiddler(configs, override, resolved));
    else if (override.kind === 'file') {
      const assignments = asUsage(origin, () => readConfigFile(override.file, { notify })).flatMap(opened);
      const [edited, set] = [assignments.filter(isEdit), assignments.filter((each) => !isEdit(each))];
      addConstants(
        set.map(({ path, value, place }) => ({
          name: formatPath(path),
          value: value instanceof Section ? value.toRecord() : value,
          origin: place,
        })),
      );
      edits.push((configs) => applyAssignments(configs, edited, { notify }));
    } else if (isConfigPath(override.path)) {
      edits.push((configs) => {
        // Of two flags the later one holds, by whatever names they call a field.
        const path = new PresentNames(notify).path(configs, parsePath(override.path), origin);
        if (override.kind === 'set') setPath(configs, path, override.text, origin);
        else unsetPath(configs, path, origin);
      });
    } else if (override.kind === 'set') addConstants([{ name: override.path, text: override.text, origin }]);
    else addConstants([{ name: override.path, toDefault: true, origin }]);
  }
  for (const { name, origin } of constants) checkConstant(resolved.cls, name, origin);
  return { constants, edits };
}

/** Summaries, records and decoded texts are told apart by the names of the inputs. */
function checkNames(experiment: Experiment, what: string, configs: readonly Config<BaseInput>[]): void {
  const seen = new Map<string, number>();
  for (const [i, config] of configs.entries()) {
    const name = config.name ?? (config.isTraining ? 'train' : 'input');
    const first = seen.get(name);
    if (first !== undefined) {
      const { name: cls } = experiment.constructor;
      const path = `${what}[${i}].name`;
      throw new ConfigError(
        `${cls}: ${what}[${first}] and ${what}[${i}] are both named '${name}', and would write the same summaries. ` +
          `Give one of them another name: --set ${path}=NAME.`,
        { path },
      );
    }
    seen.set(name, i);
  }
}

/** What a method of the experiment returns. @throws ConfigError for a promise. */
function madeBy<K extends (typeof configRoots)[number] | 'validate'>(experiment: Experiment, method: K) {
  const made = experiment[method]();
  refusePromise(made, `${experiment.constructor.name}.${method}()`, 'what counts is what it returns');
  return made;
}

/** What the experiment's methods return, each noted as the method's. */
function configsOf(experiment: Experiment): ExperimentConfigs {
  const configs = makeConfigs({});
  for (const root of configRoots) {
    const made = madeBy(experiment, root);
    withOrigin(`${experiment.constructor.name}.${root}()`, () => Object.assign(configs, { [root]: made }));
  }
  return configs;
}

/** The constants that `overrides` set. @throws UsageError for one that the experiment does not have. */
export function constantOverrides(
  resolved: ResolvedExperiment,
  overrides: readonly Override[],
): readonly ConstantOverride[] {
  return sorted(overrides, resolved, () => {}).constants;
}

/**
 * Makes the experiment and its configs. Two passes over the overrides, each in the order of the command line: first
 * those of constants, for presets that are computed from a constant, and the methods, must see the new value;
 * then, on what the methods returned, those of configs and the fiddlers.
 *
 * @throws UsageError or ConfigError for an unknown constant, path or fiddler, a value that does not fit, a constant
 *   that nothing sets, or two inputs with one name.
 */
export function configure(
  resolved: ResolvedExperiment,
  overrides: readonly Override[] = [],
): ConfiguredExperiment {
  const notices = new Set<string>();
  const { constants, edits } = sorted(overrides, resolved, (notice) => notices.add(notice));
  const experiment = instantiate(resolved.cls, constants);
  checkRequired(experiment);
  const configs = configsOf(experiment);
  for (const edit of edits) edit(configs);
  const { task } = configs;
  const [datasets, decodeDatasets] = [[...configs.datasets], [...configs.decodeDatasets]];
  checkNames(experiment, 'datasets', datasets);
  checkNames(experiment, 'decodeDatasets', decodeDatasets);
  madeBy(experiment, 'validate');
  const unread = unreadOverrides(experiment).map(
    ({ name, origin }) =>
      `${origin}: ${resolved.cls.name} never reads the constant ${name} while it makes its configs, so this changes nothing.`,
  );
  const warnings = [...notices, ...unread];
  return { name: resolved.name, experiment, configs, task, datasets, decodeDatasets, warnings };
}
