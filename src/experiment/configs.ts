/**
 * @file An experiment's configs as one config, so that every write by a flag, file or fiddler is checked and recorded.
 */
import { z } from 'zod';
import { type Config, Configurable, sub } from '../hparams/index.js';
import { BaseInput, BaseInputSpecsProvider } from '../inputs/index.js';
import { BaseExecutor, BaseProgram, SingleTask } from '../tasks/index.js';
import { MachineRule } from './machineRule.js';

/** Results of the methods that every experiment has. */
class Configs extends Configurable.with({
  task: sub(SingleTask, null).describe('The model, learner and training schedule.'),
  datasets: z.array(sub(BaseInput, null)).describe('The inputs.'),
  decodeDatasets: z.array(sub(BaseInput, null)).describe('The inputs that are continued in decode modes.'),
}) {}

/** Those of an experiment that has more, which few need: a dump of the others has no line of it. */
class ExtendedConfigs extends Configs.with({
  evalPrograms: z
    .array(sub(BaseProgram, null))
    .nullable()
    .default(null)
    .describe('Programs in the place of an evaluation of each dataset; null: these evaluations.'),
  decodePrograms: z
    .array(sub(BaseProgram, null))
    .nullable()
    .default(null)
    .describe('Programs in the place of a decode of each dataset; null: these decodes.'),
  executor: sub(BaseExecutor, null)
    .nullable()
    .default(null)
    .describe('Order of steps and programs in training; null: in turns.'),
  inputSpecsProvider: sub(BaseInputSpecsProvider, null)
    .nullable()
    .default(null)
    .describe('Specs that the first batch is compared with; null: none.'),
  machineRules: z.array(sub(MachineRule, null)).default([]).describe('Settings by machine.'),
  machineRule: z
    .int()
    .nonnegative()
    .nullable()
    .default(null)
    .describe('Index of the rule that was applied; null: none, as in reviews, which compare the rules.'),
}) {}

/** Names of the configs that every experiment has, with which paths into them start. */
export const commonRoots = ['task', 'datasets', 'decodeDatasets'] as const;
/** Names of those that few have; their methods return null or an empty list by default. */
export const extraRoots = [
  'evalPrograms',
  'decodePrograms',
  'executor',
  'inputSpecsProvider',
  'machineRules',
] as const;
export const configRoots = [...commonRoots, ...extraRoots] as const;

/** Configs that few experiments have, by their roots. */
export type ExtraConfigs = Partial<
  Pick<ConfigsOf<ExtendedConfigs>, 'evalPrograms' | 'decodePrograms' | 'executor' | 'inputSpecsProvider'>
>;
type ConfigsOf<T extends Configs> = Config<T>;

/** An experiment's configs, as passed to fiddlers: `configs.task.train.numTrainSteps = 100`. */
export type ExperimentConfigs = Config<Configs> &
  Partial<Pick<Config<ExtendedConfigs>, (typeof extraRoots)[number] | 'machineRule'>>;

/** The configs of `extraRoots` that an experiment has, and the index of its rule. */
export function extraOf(
  configs: ExperimentConfigs,
): Partial<Omit<Config<ExtendedConfigs>, keyof Config<Configs>>> {
  const given = Object.entries(configs).filter(([root, value]) => !isCommon(root) && value !== null);
  return Object.fromEntries(given) as ReturnType<typeof extraOf>;
}

const isCommon = (root: string): boolean => (commonRoots as readonly string[]).includes(root);

/**
 * Combines the methods' results.
 *
 * @param isExtended whether the config has room for those of `extraRoots`. @throws ConfigError for a result of the wrong type
 */
export function makeConfigs(
  values: Partial<ExperimentConfigs>,
  isExtended = Object.keys(values).some((root) => !isCommon(root)),
): ExperimentConfigs {
  return isExtended ? ExtendedConfigs.config(values as never) : Configs.config(values as never);
}

const roots = new RegExp(`^(?:${configRoots.join('|')})(?:[.[]|$)`);

/** Whether a path leads into the configs, instead of naming a constant. */
export function isConfigPath(path: string): boolean {
  return roots.test(path);
}
