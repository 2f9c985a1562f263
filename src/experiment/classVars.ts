/** @file experiment_cls_vars.txt: the effective constants, grouped by the class that set them (Pax's experiment_vars_summary). */
import { type EffectiveConstant, effectiveConstants } from './effectiveConstants.js';
import type { Experiment } from './experiment.js';

/** Constants by the class (or the flag) that set them, in the order of the classes. */
export type ClassVars = Map<string, Record<string, unknown>>;

/** Groups effective constants by who set them. */
export function classVars(constants: readonly EffectiveConstant[]): ClassVars {
  const groups: ClassVars = new Map();
  for (const { name, value, setBy } of constants) {
    const group = groups.get(setBy) ?? {};
    group[name] = value;
    groups.set(setBy, group);
  }
  return groups;
}

/**
 * The text of experiment_cls_vars.txt: `ClassName:` lines, each followed by its `  name: value` lines; values are
 * JSON. A constant without a value reads `(not set)`.
 */
export function classVarsText(experiment: Experiment): string {
  const lines: string[] = [];
  for (const [setBy, values] of classVars(effectiveConstants(experiment))) {
    lines.push(`${setBy}:`);
    for (const [name, value] of Object.entries(values)) {
      lines.push(`  ${name}: ${value === undefined ? '(not set)' : JSON.stringify(value)}`);
    }
  }
  return lines.length > 0 ? `${lines.join('\n')}\n` : '';
}

/** Reads back what `classVarsText` wrote. */
export function parseClassVars(text: string): ClassVars {
  const groups: ClassVars = new Map();
  let group: Record<string, unknown> = {};
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const constant = /^ {2}([^:]+): (.*)$/.exec(line);
    if (constant) {
      group[constant[1]!] = constant[2] === '(not set)' ? undefined : JSON.parse(constant[2]!);
    } else {
      group = {};
      groups.set(line.replace(/:$/, ''), group);
    }
  }
  return groups;
}
