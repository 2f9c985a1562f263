/** @file Configs rebuilt from documents of two versions, on classes with the fields of both; values as text. */
import { z } from 'zod';
import {
  AddedPart,
  type AnyConfig,
  Configurable,
  cast,
  type DiffValue,
  type Fields,
  isConfig,
  OldPart,
  showLong,
  UNNAMED,
} from '../../hparams/index.js';
import { shortened, visible } from '../../system/text/index.js';
import type { ConfigDocument, ConfigEntry, JsonValue } from '../versions/protocol.js';

/** A value of another version's class, by its text. Values with equal texts are one object. */
class ShownValue {
  private static readonly known = new Map<string, ShownValue>();

  private constructor(readonly text: string) {}

  /** Its label in graphs. */
  get [Symbol.toStringTag](): string {
    return this.text;
  }

  static of(text: string): ShownValue {
    let value = ShownValue.known.get(text);
    if (value === undefined) ShownValue.known.set(text, (value = new ShownValue(text)));
    return value;
  }
}

/** One version of an experiment's configs, to compare. */
export interface Displayed {
  readonly root: unknown;
  /** The entry of the document that a config was made from. */
  readonly entries: ReadonlyMap<unknown, ConfigEntry>;
}

type DisplayClass = { config(values: Record<string, unknown>): AnyConfig };
/** Default value of a field in all configs of its class, as JSON; null if defaults differ. */
type Defaults = Map<string, string | null>;

/**
 * Two documents as configs of the same classes, with the fields that a class has in either. Where a class's default is
 * one plain value in both versions, it is the default here, too: so a value that became explicit, or ceased to be, is no
 * change. All other defaults stand as values.
 */
export function display(old: ConfigDocument, now: ConfigDocument): { old: Displayed; now: Displayed } {
  const fields = new Map<string, Set<string>>();
  const defaults = new Map<string, Defaults>();
  // Fields in the order of the new version.
  for (const document of [now, old]) {
    for (const entry of document.configs) {
      noteFields(entry, fields);
      noteDefaults(entry, defaults);
    }
  }
  const classes = new Map<string, DisplayClass>();
  for (const [name, names] of fields) classes.set(name, displayClass(name, names, defaults.get(name)!));
  return { old: make(old, classes, defaults), now: make(now, classes, defaults) };
}

function noteFields(entry: ConfigEntry, fields: Map<string, Set<string>>): void {
  let names = fields.get(entry.class);
  if (names === undefined) fields.set(entry.class, (names = new Set()));
  for (const name of Object.keys(entry.values)) names.add(name);
}

function noteDefaults(entry: ConfigEntry, defaults: Map<string, Defaults>): void {
  let own = defaults.get(entry.class);
  if (own === undefined) defaults.set(entry.class, (own = new Map()));
  for (const name of entry.defaults) {
    const text = JSON.stringify(entry.values[name]);
    const known = own.get(name);
    if (text.includes('"$') || (known !== undefined && known !== text)) own.set(name, null);
    else own.set(name, text);
  }
}

function displayClass(name: string, names: ReadonlySet<string>, defaults: Defaults): DisplayClass {
  const fields: Record<string, z.ZodType> = {};
  for (const field of names) {
    const text = defaults.get(field);
    fields[field] = typeof text === 'string' ? z.unknown().default(JSON.parse(text)) : z.unknown();
  }
  class Shown extends Configurable.with(fields as Fields) {
    // Its name is that of a class of another version, which this process need not know.
    static readonly [UNNAMED] = true;
  }
  Object.defineProperty(Shown, 'name', { value: name });
  return Shown as unknown as DisplayClass;
}

function make(
  document: ConfigDocument,
  classes: ReadonlyMap<string, DisplayClass>,
  defaults: ReadonlyMap<string, Defaults>,
): Displayed {
  const configs: AnyConfig[] = [];
  const entries = new Map<unknown, ConfigEntry>();
  for (const entry of document.configs) {
    const values: [string, unknown][] = [];
    for (const [name, value] of Object.entries(entry.values)) {
      const isDefault =
        typeof defaults.get(entry.class)!.get(name) === 'string' && entry.defaults.includes(name);
      if (!isDefault) values.push([name, decode(value, (number) => configs[number])]);
    }
    const whole = classes.get(entry.class)!.config(Object.fromEntries(values));
    const config = inKind(whole, entry.kind);
    configs.push(config);
    entries.set(config, entry);
  }
  return { root: decode(document.root, (number) => configs[number]), entries };
}

function inKind(config: AnyConfig, kind: ConfigEntry['kind'] = 'config'): AnyConfig {
  if (kind === 'config') return config;
  return kind === 'partial' ? cast(kind, config) : cast(kind, config);
}

const numbers: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity,
  '-Infinity': -Infinity,
  '-0': -0,
};

/** Decodes a value of a document as far as this version can; `config` gives the configs it refers to. */
function decode(value: JsonValue, config: (number: number) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => decode(item, config));
  const record = value as Record<string, JsonValue>;
  const [mark, ...others] = Object.keys(record);
  if (mark?.startsWith('$') !== true || others.length > 0) {
    return Object.fromEntries(Object.entries(record).map(([key, item]) => [key, decode(item, config)]));
  }
  const marked = record[mark];
  switch (mark) {
    case '$config':
      return config(marked as number);
    case '$undefined':
      return undefined;
    case '$number':
      return numbers[marked as string];
    case '$record':
      return Object.fromEntries(
        (marked as [string, JsonValue][]).map(([key, item]) => [key, decode(item, config)]),
      );
    case '$text':
    case '$constant':
    case '$date':
      return ShownValue.of(String(marked));
    case '$bigint':
      return ShownValue.of(`${String(marked)}n`);
    default:
      return ShownValue.of(`${mark.slice(1)} ${JSON.stringify(marked)}`);
  }
}

/** Text of a value; `part` gives the texts of its configs. */
export function showParts(value: DiffValue, part: (part: OldPart | AddedPart) => string): string {
  return shortened(visible(write(value, part)));
}

/** A value of a document; `part` stands for its configs. */
export function showJson(value: JsonValue, part = '…'): string {
  const decoded = decode(value, () => ShownValue.of(part));
  return showParts(decoded, () => part);
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
