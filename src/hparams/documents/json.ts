/** @file Configs as JSON: a list of configs that refer to each other by number, so that sharing is kept. */
import { origin, proxyFor, setJsonForm } from '../config.js';
import { isContainer, refusedKeys } from '../containers.js';
import { showValue } from '../describe.js';
import { ConfigError } from '../errors.js';
import { classesNamed, classNames, infoOf } from '../fields.js';
import { didYouMean } from '../names.js';
import { ConfigNode, isExplicit, type NodeKind, nodeOf, rawValue, writeField } from '../node.js';
import { formatLink } from '../paths.js';
import { edgesOf, walk } from '../traverse.js';
import type { AbstractClass, AnyConfig } from '../types.js';

const format = 'luthier-config';
const version = 1;

/** A value in a document: JSON, with objects `{"$config": 3}`, `{"$number": "NaN"}` and the like for what JSON lacks. */
type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** One config in a document: its class, its explicit values, and a path for the reader. */
interface JsonConfig {
  class: string;
  kind?: NodeKind;
  path?: string;
  values: { [field: string]: JsonValue };
}

/** What `toJSON` makes. */
export interface JsonDocument {
  format: typeof format;
  version: number;
  root: JsonValue;
  configs: JsonConfig[];
}

/**
 * `root`, a config or arrays and records of configs, as data for `JSON.stringify`. Only explicit values are kept;
 * history is not.
 *
 * @throws ConfigError for values that have no JSON form, with their path.
 */
export function toJSON(root: unknown): JsonDocument {
  const numbers = new Map<ConfigNode, number>();
  const configs: JsonConfig[] = [];
  walk(root, {
    children: (node, path) => edgesOf(node, path),
    leave(node, path) {
      numbers.set(node, configs.length);
      const values: JsonConfig['values'] = {};
      for (const field of node.info.fields.values()) {
        if (!isExplicit(node, field.name)) continue;
        const where = (): string => formatLink({ parent: path, segment: field.name });
        values[field.name] = encode(rawValue(node, field), numbers, where);
      }
      const kind = node.kind === 'config' ? {} : { kind: node.kind };
      configs.push({ class: node.info.name, ...kind, values });
    },
  });
  return { format, version, root: encode(root, numbers, () => '<root>'), configs };
}

setJsonForm(toJSON);

function encode(value: unknown, numbers: Map<ConfigNode, number>, where: () => string): JsonValue {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number')
    return Number.isFinite(value) && !Object.is(value, -0) ? value : { $number: showValue(value) };
  if (value === undefined) return { $undefined: true };
  if (typeof value === 'bigint') return { $bigint: String(value) };
  const node = nodeOf(value);
  if (node !== undefined) return { $config: numbers.get(node)! };
  if (Array.isArray(value)) return value.map((item) => encode(item, numbers, where));
  if (value instanceof Date) return { $date: value.toISOString() };
  if (isContainer(value)) {
    const entries = Object.entries(value).map(([key, item]): [string, JsonValue] => [
      key,
      encode(item, numbers, where),
    ]);
    // A key that looks like one of the marks here must not be read as one.
    if (entries.some(([key]) => key.startsWith('$'))) return { $record: entries };
    return Object.fromEntries(entries);
  }
  throw new ConfigError(
    `${where()}: ${showValue(value)} has no JSON form. Describe it by a config, or by plain values.`,
    {
      path: where(),
    },
  );
}

/**
 * What `toJSON` was given, from its document or the document's text. Every value is checked as if it were written by
 * hand. Classes are found by name among those that the program has used, and `classes`; nothing is imported.
 *
 * @throws ConfigError for a document that is broken, of another version, or names unknown classes or fields.
 */
export function fromJSON(
  document: JsonDocument | string,
  options: { classes?: readonly AbstractClass[] } = {},
): unknown {
  const parsed = typeof document === 'string' ? parseText(document) : document;
  checkDocument(parsed);
  const made: ConfigNode[] = [];
  const writer = origin();
  for (const [number, entry] of parsed.configs.entries()) {
    checkEntry(entry, number);
    const node = new ConfigNode(
      infoOf(findClass(entry.class, options.classes ?? [])),
      entry.kind ?? 'config',
    );
    proxyFor(node);
    for (const name of Object.keys(entry.values))
      writeField(node, name, decode(entry.values[name]!, made), writer);
    made.push(node);
  }
  return decode(parsed.root, made);
}

function parseText(text: string): JsonDocument {
  try {
    return JSON.parse(text) as JsonDocument;
  } catch (error) {
    throw new ConfigError(`This is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

function checkDocument(document: JsonDocument): void {
  if (
    typeof document !== 'object' ||
    document === null ||
    document.format !== format ||
    !Array.isArray(document.configs)
  ) {
    throw new ConfigError(
      `This is not a config document: it has no "format": "${format}" with a list of configs.`,
    );
  }
  if (document.version !== version) {
    throw new ConfigError(
      `The config document has version ${showValue(document.version)}; this program reads version ${version}.`,
    );
  }
}

function checkEntry(entry: JsonConfig, number: number): void {
  const isRecord = isContainer(entry) && isContainer(entry.values) && !Array.isArray(entry.values);
  if (
    !isRecord ||
    typeof entry.class !== 'string' ||
    !['config', 'partial', 'argFactory', undefined].includes(entry.kind)
  ) {
    throw new ConfigError(
      `Entry ${number} of the config document needs "class", "values" and perhaps "kind", got ${showValue(entry)}.`,
    );
  }
}

function findClass(name: string, given: readonly AbstractClass[]): AbstractClass {
  const own = given.filter((cls) => cls.name === name);
  const found = own.length > 0 ? own : classesNamed(name);
  if (found.length === 1) return found[0]!;
  if (found.length > 1) {
    throw new ConfigError(
      `There are ${found.length} classes called '${name}': say which by fromJSON(document, { classes: [${name}] }).`,
    );
  }
  const hint = didYouMean(name, [...classNames(), ...given.map((cls) => cls.name)]);
  throw new ConfigError(
    `No class '${name}' is known.${hint} Import it, and pass it as fromJSON(document, { classes: [${name}] }).`,
  );
}

function decode(value: JsonValue, made: ConfigNode[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => decode(item, made));
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0]!.startsWith('$')) return decodeMark(keys[0]!, value[keys[0]!]!, made);
  return decodeEntries(
    keys.map((key) => [key, value[key]!]),
    made,
  );
}

function decodeEntries(entries: [string, JsonValue][], made: ConfigNode[]): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (const [key, value] of entries) {
    if (refusedKeys.has(key)) throw new ConfigError(`'${key}' is not allowed as a key in a config document.`);
    record[key] = decode(value, made);
  }
  return record;
}

function decodeMark(mark: string, value: JsonValue, made: ConfigNode[]): unknown {
  switch (mark) {
    case '$config': {
      const node = made[value as number];
      if (node !== undefined) return node.proxy as AnyConfig;
      throw new ConfigError(
        `The config document refers to config ${showValue(value)}, which does not stand before it.`,
      );
    }
    case '$number':
      return Number(value);
    case '$bigint':
      return BigInt(value as string);
    case '$date':
      return new Date(value as string);
    case '$undefined':
      return undefined;
    case '$record':
      return decodeEntries(value as [string, JsonValue][], made);
    default:
      throw new ConfigError(`The config document has an unknown mark '${mark}'.`);
  }
}
