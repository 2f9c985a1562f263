/** @file Names of trials' directories (paxml/trainer_lib.py: `1/x=1|y=a`). */
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
