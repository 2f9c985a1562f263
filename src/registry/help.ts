/** @file What --help shows of an experiment: every constant and config path that --set can set. */
import { describeSchema, listPaths, showValue } from '../hparams/index.js';
import { configure, type SetOverride } from './configure.js';
import { UsageError } from './errors.js';
import { effectiveConstants, instantiate } from './experiment.js';
import type { ResolvedExperiment } from './resolve.js';

function line(path: string, type: string, value: string, description: string | undefined): string {
  return `  ${path} : ${type} = ${value}${description ? `\n      ${description}` : ''}`;
}

function pathLines(root: string, config: unknown): string[] {
  return listPaths(config).map(({ path, type, description, ...info }) =>
    line(`${root}.${path}`, type, 'value' in info ? showValue(info.value) : '(not set)', description),
  );
}

/**
 * The constants and config fields of an experiment with type, present value and description, as lines. Where a
 * required constant is not set the configs can't be made: the text then says so in their place.
 */
export function settingsHelp(resolved: ResolvedExperiment, overrides: readonly SetOverride[]): string {
  const constants = effectiveConstants(instantiate(resolved.cls)).map(({ name, value, schema }) =>
    line(
      name,
      describeSchema(schema),
      value === undefined ? '(not set)' : showValue(value),
      schema.description,
    ),
  );
  const lines = [`Constants of ${resolved.name}:`, ...constants];
  try {
    const { task, datasets, decodeDatasets } = configure(resolved, overrides);
    lines.push('', 'Fields of its configs:', ...pathLines('task', task));
    datasets.forEach((dataset, i) => void lines.push(...pathLines(`datasets[${i}]`, dataset)));
    decodeDatasets.forEach((dataset, i) => void lines.push(...pathLines(`decodeDatasets[${i}]`, dataset)));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    lines.push('', `Fields of its configs can be listed once they can be made. ${error.message}`);
  }
  return lines.join('\n');
}
