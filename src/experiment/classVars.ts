/** @file experiment_cls_vars.txt: effective constants by the class that set them (Pax's experiment_vars_summary). */
import { type EffectiveConstant, effectiveConstants } from './effectiveConstants.js';
import type { Experiment } from './experiment.js';

/** Constants by the class (or flag) that set them, in class order. */
export type ClassVars = Map<string, Record<string, unknown>>;

/** Groups effective constants by origin. */
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
 * Text of experiment_cls_vars.txt: `ClassName:` lines, each followed by `  name: value` lines with JSON values. A
 * constant without a value shows `(not set)`.
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

/** Parses the output of `classVarsText`. */
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
