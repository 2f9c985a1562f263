/** @file Help for one experiment: all constants, config paths, fiddlers and sweeps. */

import {
  type EffectiveConstant,
  effectiveConstants,
  instantiate,
  MissingConstantError,
} from '../experiment/index.js';
import { describeSchema, type Fields, listPaths, showLong } from '../hparams/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { showFile } from '../registry/names/index.js';
import { commandFunctions } from './commandFunctions.js';
import { configure } from './configure.js';
import type { Change } from './overrides.js';
import { expandSweeps } from './sweeps.js';

/** A setting: its name, whether it differs from its default, and its description in paragraphs. */
interface Entry {
  readonly name: string;
  readonly changed: boolean;
  readonly about: readonly string[];
}

/** Longer names get their text on the next lines, so that a few of them don't widen the column. */
const widestName = 44;

/** Wraps text to `width` columns; longer words get lines of their own. */
function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1)!;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Lays out entries in two columns, names and texts, in `width` columns. */
function columns(entries: readonly Entry[], width: number): string[] {
  const names = entries.map(({ name }) => name.length).filter((length) => length <= widestName);
  const indent = Math.max(8, ...names) + 4;
  return entries.flatMap(({ name, changed, about }) => {
    const head = `${changed ? '*' : ' '} ${name}`;
    const text = about.flatMap((paragraph) => wrap(paragraph, Math.max(30, width - indent)));
    const [first = '', ...rest] = name.length > widestName ? ['', ...text] : text;
    return [
      `${head.padEnd(indent)}${first}`.trimEnd(),
      ...rest.map((line) => `${' '.repeat(indent)}${line}`),
    ];
  });
}

const notSet = '(not set)';

function constantEntry({ name, value, setBy, overridden, schema }: EffectiveConstant, cls: string): Entry {
  const byDefault = schema.safeParse(undefined);
  const shown = value === undefined ? notSet : showLong(value);
  const changed = byDefault.success && value !== undefined && showLong(byDefault.data) !== shown;
  const by = changed || (overridden && value !== undefined) || setBy !== cls ? `, set by ${setBy}` : '';
  const initial = changed ? `, default ${showLong(byDefault.data)}` : '';
  return {
    name,
    changed,
    about: [
      `${describeSchema(schema)} = ${shown}${initial}${by}`,
      ...(schema.description ? [schema.description] : []),
    ],
  };
}

function pathEntries(root: string, config: unknown): Entry[] {
  return listPaths(config).map((info) => {
    const shown = 'value' in info ? showLong(info.value) : notSet;
    const initial = 'default' in info ? showLong(info.default) : undefined;
    const changed = 'value' in info && initial !== undefined && initial !== shown;
    const parts = [`${info.type} = ${shown}`];
    if (changed) parts.push(`default ${initial}`);
    if (info.where !== undefined) parts.push(`set at ${info.where}`);
    const about = [parts.join(', ')];
    if (info.description !== undefined) about.push(info.description);
    if (info.tags.length > 0) about.push(`Tags: ${info.tags.join(', ')}.`);
    return { name: `${root}.${info.path}`, changed, about };
  });
}

function argumentEntries(fields: Fields): string[] {
  return Object.entries(fields).map(([name, schema]) => {
    const byDefault = schema.safeParse(undefined);
    const initial = byDefault.success ? ` = ${showLong(byDefault.data)}` : '';
    const about = schema.description ? `. ${schema.description}` : '';
    return `${name}: ${describeSchema(schema)}${initial}${about}`;
  });
}

function functionEntries(resolved: ResolvedExperiment, kind: 'fiddler' | 'sweep'): Entry[] {
  return commandFunctions(resolved.exports)
    .filter((each) => (each.kind ?? 'fiddler') === kind)
    .map(({ name, fields }) => ({
      name: fields === undefined ? `${name}(…)` : `${name}(${Object.keys(fields).join(', ')})`,
      changed: false,
      about:
        fields === undefined
          ? ['a plain function: its arguments are literals, by position']
          : argumentEntries(fields),
    }));
}

/**
 * Lists everything that flags can name in an experiment, with type, present value, default, description and place; a
 * star marks changed values. Wraps text only if a width is given. If the configs can't be made, for example without a
 * required constant, the text says why.
 */
export function settingsHelp(
  resolved: ResolvedExperiment,
  changes: readonly Change[],
  width = Number.POSITIVE_INFINITY,
): string {
  const [combination] = expandSweeps(changes, resolved);
  const cls = resolved.cls.name;
  const lines: string[] = [];
  const section = (title: string, entries: readonly Entry[]) => {
    if (entries.length > 0) lines.push(...(lines.length > 0 ? [''] : []), title, ...columns(entries, width));
  };
  const constantsHelp = (constants: readonly EffectiveConstant[]) =>
    section(
      `Constants of ${resolved.name}:`,
      constants.map((constant) => constantEntry(constant, cls)),
    );
  try {
    const { experiment, task, datasets, decodeDatasets } = configure(resolved, combination!.overrides);
    constantsHelp(effectiveConstants(experiment));
    section('Fields of its configs:', [
      ...pathEntries('task', task),
      ...datasets.flatMap((dataset, i) => pathEntries(`datasets[${i}]`, dataset)),
      ...decodeDatasets.flatMap((dataset, i) => pathEntries(`decodeDatasets[${i}]`, dataset)),
    ]);
  } catch (error) {
    if (!(error instanceof MissingConstantError)) throw error;
    constantsHelp(effectiveConstants(instantiate(resolved.cls)));
    lines.push('', `Fields of its configs can be listed once they can be made. ${error.message}`);
  }
  const file = showFile(resolved.file);
  section(`Fiddlers of ${file}, for --fiddler:`, functionEntries(resolved, 'fiddler'));
  section(`Sweeps of ${file}, for --sweep:`, functionEntries(resolved, 'sweep'));
  return lines.join('\n');
}
