/** @file Values of diffs as text on one line. */
import { AddedPart, type DiffValue, isConfig, OldPart, showLong } from '../../hparams/index.js';
import { ShownValue } from './display.js';

const longest = 160;

/** A text that stays on its line and looks like what it is: control characters and those that turn text are written out. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A text, its middle left out where it is long. */
export function shortened(text: string, most = longest): string {
  if (text.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

/** A value; what stands for its configs says `part`. */
export function showParts(value: DiffValue, part: (part: OldPart | AddedPart) => string): string {
  return shortened(visible(write(value, part)));
}

function write(value: DiffValue, part: (part: OldPart | AddedPart) => string): string {
  if (value instanceof OldPart || value instanceof AddedPart) return part(value);
  if (value instanceof ShownValue) return value.text;
  if (isConfig(value)) return 'a config';
  if (value === undefined) return 'not set';
  if (Array.isArray(value)) return `[${value.map((item) => write(item, part)).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, item]) => {
      const name = /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
      return `${name}: ${write(item, part)}`;
    });
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
  }
  return typeof value === 'string' ? quoted(value) : showLong(value);
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}
