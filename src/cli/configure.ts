/**
 * @file Configuration of an experiment: constants from the command line, then its methods, then edits of the configs.
 */

import {
  type ConstantOverride,
  checkRequired,
  commonRoots,
  configRoots,
  constantsOf,
  Experiment,
  type ExperimentConfigs,
  type ExtraConfigs,
  extraOf,
  extraRoots,
  instantiate,
  isConfigPath,
  makeConfigs,
  oldConstantsOf,
  type RuleMachine,
  unreadOverrides,
} from '../experiment/index.js';
import {
  type Assignment,
  append,
  applyAssignments,
  build,
  type Config,
  ConfigError,
  didYouMean,
  findTag,
  formatPath,
  givenTwice,
  isPathPattern,
  listTags,
  oldNameNotice,
  PresentNames,
  parsePath,
  pathsLike,
  readConfigFile,
  refusePromise,
  Section,
  type Segment,
  setPath,
  taggedPaths,
  unsetPath,
  withOrigin,
} from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { enterForeignCode } from '../system/index.js';
import { UsageError } from '../system/text/index.js';
import type { SingleTask } from '../tasks/index.js';
import { classesFor } from './configModules.js';
import { applyFiddler } from './fiddlers.js';
import { pickRule } from './machineRules.js';
import { asUsage, type Override, type SetOverride, type UnsetOverride } from './overrides.js';

/** An experiment with the configs to be built. */
export interface ConfiguredExperiment extends ExtraConfigs {
  readonly name: string;
  readonly experiment: Experiment;
  /** The configs below as one config, for flags and fiddlers to edit. */
  readonly configs: ExperimentConfigs;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
  /** One line per problem: constants set by flags but never read, old field names. */
  readonly warnings: readonly string[];
  /** One line per pattern of a flag: the fields that it changed; and one about the rule for the machine. */
  readonly hits: readonly string[];
}

/** Applies an override to the configs. */
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

/** Renames `constants`, set by one flag or file, to their present names; reports old ones to `notify`. */
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

/** Flattens the record `constants` of a dump; other assignments stay as they are. */
function opened(assignment: Assignment): readonly Assignment[] {
  const { path, value, place } = assignment;
  if (path.length !== 1 || path[0] !== 'constants') return [assignment];
  if (value instanceof Section) return value.assignments;
  return Object.entries(value as object).map(([name, part]) => ({ path: [name], value: part, place }));
}

/** Whether an assignment of a file edits configs, not a constant. */
function isEdit({ path: [root] }: Assignment): boolean {
  return root === undefined || (configRoots as readonly unknown[]).includes(root);
}

/** Whether a flag names a tag: `#LearningRate`. */
function isTag(path: string): boolean {
  return path.startsWith('#');
}

/** Takes lines about the changes of an experiment. */
interface Told {
  /** Takes a problem, which is told once. */
  readonly notify: (problem: string) => void;
  /** Takes the fields that a pattern changed. */
  readonly hit: (line: string) => void;
}

/** Most fields that the line about a pattern names. */
const mostHits = 100;

/** The paths in the configs that a flag names: one, those that its pattern means, or those of all fields with its tag. */
function targetsOf(
  { path, origin }: SetOverride | UnsetOverride,
  configs: ExperimentConfigs,
  { notify, hit }: Told,
): Segment[][] {
  if (isPathPattern(path)) {
    const paths = asUsage(origin, () => pathsLike(configs, path));
    const names = paths.slice(0, mostHits).map((each) => formatPath(each));
    const more = paths.length > mostHits ? ` and ${paths.length - mostHits} more` : '';
    const count = paths.length === 1 ? '1 field' : `${paths.length} fields`;
    hit(`${origin} changes ${count}: ${names.join(', ')}${more}`);
    return paths;
  }
  // Of two flags the later one wins, even if they use different names of one field.
  if (!isTag(path)) return [new PresentNames(notify).path(configs, parsePath(path), origin)];
  const tag = asUsage(origin, () => findTag(path.slice(1)));
  const paths = taggedPaths(configs, tag);
  if (paths.length > 0) return paths;
  throw new UsageError(
    `${origin}: no field of the configs has the tag. There are ${listTags(configs).join(', ')}.`,
  );
}

/** Separates constants from edits of the configs; both keep their order. */
function sorted(
  overrides: readonly Override[],
  resolved: ResolvedExperiment,
  told: Told,
): { constants: ConstantOverride[]; edits: Edit[] } {
  const { notify } = told;
  const constants: ConstantOverride[] = [];
  const edits: Edit[] = [];
  for (const override of overrides) {
    const { origin } = override;
    const addConstants = (added: readonly ConstantOverride[]) =>
      append(constants, withPresentNames(added, resolved.cls, notify));
    if (override.kind === 'fiddler') edits.push((configs) => applyFiddler(configs, override, resolved));
    else if (override.kind === 'file') {
      const assignments = asUsage(origin, () =>
        readConfigFile(override.file, { notify, classes: classesFor(override) }),
      ).flatMap(opened);
      const [edited, set] = [assignments.filter(isEdit), assignments.filter((each) => !isEdit(each))];
      addConstants(
        set.map(({ path, value, place }) => ({
          name: formatPath(path),
          value: value instanceof Section ? value.toRecord() : value,
          origin: place,
        })),
      );
      edits.push((configs) => applyAssignments(configs, edited, { notify }));
    } else if (isTag(override.path) || isPathPattern(override.path) || isConfigPath(override.path)) {
      edits.push((configs) => {
        for (const path of targetsOf(override, configs, told)) {
          if (override.kind === 'set') setPath(configs, path, override.text, origin);
          else unsetPath(configs, path, origin);
        }
      });
    } else if (override.kind === 'set') addConstants([{ name: override.path, text: override.text, origin }]);
    else addConstants([{ name: override.path, toDefault: true, origin }]);
  }
  for (const { name, origin } of constants) checkConstant(resolved.cls, name, origin);
  return { constants, edits };
}

/** Input names must be distinct: they identify summaries, records and decoded texts. */
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

/** Calls a method of the experiment. @throws ConfigError for a promise. */
function madeBy<K extends (typeof configRoots)[number] | 'validate'>(
  experiment: Experiment,
  method: K,
): ReturnType<Experiment[K]> {
  const made = experiment[method]() as ReturnType<Experiment[K]>;
  refusePromise(made, `${experiment.constructor.name}.${method}()`, 'its result is used when it returns');
  return made;
}

/** The configs that the experiment's methods return, each recorded with its method as the origin. */
function configsOf(experiment: Experiment): ExperimentConfigs {
  const common = commonRoots.map((root) => [root, madeBy(experiment, root)] as const);
  const extra = extraRoots.flatMap((root) => {
    const made = madeBy(experiment, root);
    return made === null || (root === 'machineRules' && (made as object[]).length === 0)
      ? []
      : [[root, made] as const];
  });
  const configs = makeConfigs({}, extra.length > 0);
  for (const [root, made] of [...common, ...extra])
    withOrigin(`${experiment.constructor.name}.${root}()`, () => Object.assign(configs, { [root]: made }));
  return configs;
}

/** Constants set by `overrides`. @throws UsageError for an unknown one. */
export function constantOverrides(
  resolved: ResolvedExperiment,
  overrides: readonly Override[],
): readonly ConstantOverride[] {
  return sorted(overrides, resolved, { notify: () => {}, hit: () => {} }).constants;
}

/** The rule for a machine, where the experiment has rules; its methods see the constants of flags. */
function ruleOf(
  resolved: ResolvedExperiment,
  overrides: readonly Override[],
  machine: RuleMachine | number,
): ReturnType<typeof pickRule> | undefined {
  if (resolved.cls.prototype.machineRules === Experiment.prototype.machineRules) return undefined;
  const experiment = instantiate(resolved.cls, constantOverrides(resolved, overrides));
  const rules = madeBy(experiment, 'machineRules');
  return rules.length === 0 ? undefined : pickRule(build(rules), machine);
}

/**
 * Makes an experiment and its configs. Applies the overrides in two passes, each in command-line order: constants
 * first, since computed presets and methods must see their values; then, on the methods' results, edits of configs and
 * fiddlers. The experiment's rule for the machine comes before the overrides.
 *
 * @param machine whose rule is applied, or the index of a rule; absent for none, so that nothing depends on a machine.
 * @throws UsageError or ConfigError for an unknown constant, path or fiddler, an invalid value, a missing constant, or
 *   two inputs with one name.
 */
export function configure(
  resolved: ResolvedExperiment,
  given: readonly Override[] = [],
  machine?: RuleMachine | number,
): ConfiguredExperiment {
  const done = enterForeignCode(resolved.name, 'configured');
  try {
    return madeConfigs(resolved, given, machine);
  } finally {
    done();
  }
}

function madeConfigs(
  resolved: ResolvedExperiment,
  given: readonly Override[],
  machine: RuleMachine | number | undefined,
): ConfiguredExperiment {
  const notices = new Set<string>();
  const hits: string[] = [];
  const told: Told = { notify: (problem) => notices.add(problem), hit: (line) => hits.push(line) };
  const rule = machine === undefined ? undefined : ruleOf(resolved, given, machine);
  if (rule !== undefined) hits.push(rule.line);
  const overrides = [...(rule?.overrides ?? []), ...given];
  const { constants, edits } = sorted(overrides, resolved, told);
  const experiment = instantiate(resolved.cls, constants);
  checkRequired(experiment);
  const configs = configsOf(experiment);
  if (rule !== undefined) withOrigin(rule.origin, () => Object.assign(configs, { machineRule: rule.index }));
  for (const edit of edits) edit(configs);
  const { task } = configs;
  const [datasets, decodeDatasets] = [[...configs.datasets], [...configs.decodeDatasets]];
  checkNames(experiment, 'datasets', datasets);
  checkNames(experiment, 'decodeDatasets', decodeDatasets);
  madeBy(experiment, 'validate');
  const unread = unreadOverrides(experiment).map(
    ({ name, origin }) =>
      `${origin}: ${resolved.cls.name} never reads the constant ${name} while it makes its configs, so the flag has no effect.`,
  );
  const warnings = [...notices, ...unread];
  const { machineRules: _, machineRule: __, ...extra } = extraOf(configs);
  return {
    name: resolved.name,
    experiment,
    configs,
    task,
    datasets,
    decodeDatasets,
    ...extra,
    warnings,
    hits,
  };
}
