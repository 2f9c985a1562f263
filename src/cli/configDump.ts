/** @file Output of --dump: the configs to be built, in the requested format. */

import {
  type Experiment,
  type ExperimentConfigs,
  effectiveConstants,
  extraOf,
  type RuleMachine,
} from '../experiment/index.js';
import {
  type JsonDocument,
  print,
  printHistory,
  printTree,
  showValue,
  toJSON,
  toYAML,
} from '../hparams/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { type ConfiguredExperiment, configure } from './configure.js';
import type { Change, DumpFormat } from './overrides.js';
import { expandSweeps } from './sweeps.js';

/** Input for --config_file: the configs, and the constants set on the command line. */
function documentOf({ experiment, configs: made }: ConfiguredExperiment): object {
  const set = effectiveConstants(experiment).filter(({ overridden }) => overridden);
  const constants = Object.fromEntries(set.map(({ name, value }) => [name, value]));
  const configs = recordOf(made);
  return set.length === 0 ? configs : { constants, ...configs };
}

/** The configs by their roots; of those that few experiments have, the ones with a value. */
function recordOf(configs: ExperimentConfigs): Record<string, unknown> {
  const { task, datasets, decodeDatasets } = configs;
  const parts = { task, datasets, decodeDatasets, ...extraOf(configs) };
  const copied = (value: unknown) => (Array.isArray(value) ? [...value] : value);
  return Object.fromEntries(Object.entries(parts).map(([root, value]) => [root, copied(value)]));
}

/** Document for --config_file as JSON: configs with sharing and tags, and constants set by flags. */
export function jsonDocument(configured: ConfiguredExperiment): JsonDocument {
  return toJSON(documentOf(configured));
}

/** Document for --config_file as YAML. */
export function yamlDocument(configured: ConfiguredExperiment): string {
  return toYAML(documentOf(configured));
}

/** The constants, each with its origin: a class, a flag, or the line of a file. */
function constantLines(experiment: Experiment): string {
  return effectiveConstants(experiment)
    .map(({ name, value, setBy }) => `${name} : ${showValue(value)} @ ${setBy}\n`)
    .join('');
}

type Print = (configured: ConfiguredExperiment) => string;

const printers: Readonly<Record<DumpFormat, Print>> = {
  text: ({ configs }) => print(configs),
  tree: ({ configs }) => printTree(configs),
  json: (configured) => JSON.stringify(jsonDocument(configured), null, 1),
  yaml: yamlDocument,
  history: ({ experiment, configs }) => constantLines(experiment) + printHistory(configs),
};

/** Options of a dump. */
interface DumpOptions {
  readonly warn?: (line: string) => void;
  /** The machine whose rule is applied; absent for none. */
  readonly machine?: RuleMachine;
}

/**
 * Dumps an experiment's configs after all changes, as text that ends with a newline. A sweep's runs follow one another
 * under their names; as JSON, they are an object of documents. Each distinct warning, and what a pattern changed, goes to
 * `warn` once.
 */
export function dumpText(
  resolved: ResolvedExperiment,
  changes: readonly Change[],
  format: DumpFormat,
  { warn = () => {}, machine }: DumpOptions = {},
): string {
  const told = new Set<string>();
  const printed = expandSweeps(changes, resolved).map(({ name, overrides }): [string, string] => {
    const configured = configure(resolved, overrides, machine);
    for (const line of [...configured.warnings, ...configured.hits]) told.add(line);
    return [name, printers[format](configured).trimEnd()];
  });
  for (const line of told) warn(line);
  if (printed.length === 1 && printed[0]![0] === '') return `${printed[0]![1]}\n`;
  if (format === 'json')
    return `{\n${printed.map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(',\n')}\n}\n`;
  const between = format === 'yaml' ? '---\n# ' : '# ';
  return printed.map(([name, text]) => `${between}${name}\n${text}\n`).join('\n');
}
