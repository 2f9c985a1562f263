/** @file Names of trials' directories (paxml/trainer_lib.py: `1/x=1|y=a`). */
import { join } from 'node:path';
import type { Value, Values } from '../space.js';

/** The longest name of values with the names of parameters. */
const LONGEST = 64;

function shown(value: Value): string {
  const text =
    typeof value === 'number' && !Number.isInteger(value)
      ? value.toExponential(3).replace(/e([+-])(\d)$/, 'e$10$2')
      : String(value);
  return text.replaceAll(/[^\w.+-]+/g, '_');
}

/** `1/x=1,y=a`: real numbers have four digits; the names of parameters are left out where they make it long. */
export function trialName(number: number, values: Values): string {
  const entries = Object.entries(values).map(
    ([name, value]) => [name.split('.').at(-1)!, shown(value)] as const,
  );
  const named = entries.map(([name, text]) => `${name}=${text}`).join(',');
  const short = named.length < LONGEST ? named : entries.map(([, text]) => text).join(',');
  return `${number}/${short === '' ? 'values' : short.slice(0, 200)}`;
}

/** The directory of a trial's run: in that of its study, but for a trial of an earlier one. */
export function trialDirectory(
  study: string,
  trial: { readonly number: number; readonly values: Values; readonly directory?: string },
): string {
  return trial.directory ?? join(study, 'trials', trialName(trial.number, trial.values));
}
