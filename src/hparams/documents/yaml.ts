/** @file Configs as YAML that people can read and edit, and back. */
import { ConfigError } from '../errors.js';
import { origin } from '../nodes/record.js';
import {
  format,
  type JsonConfig,
  type JsonDocument,
  type JsonValue,
  longestWritten,
  type ReadOptions,
  throwProblems,
  version,
} from './format.js';
import { encodeAll, readDocument } from './json.js';
import { parseYaml } from './parse.js';
import { isRecord, reservedNames } from './parts.js';
import { checkText } from './text.js';

/**
 * `root`, a config or arrays and records of configs, as YAML: each config at its place as `$class: Name` with its
 * explicit values, shared ones once behind an anchor. `fromYAML` reads it back, with the same sharing.
 *
 * @throws ConfigError with all values that have no form, and their paths.
 */
export function toYAML(root: unknown): string {
  const { document, problems } = encodeAll(root);
  throwProblems(problems, 'toYAML()');
  for (const { class: name, values } of document.configs) {
    const taken = Object.keys(values).find((field) => reservedNames.has(field));
    if (taken !== undefined) {
      throw new ConfigError(`${name}.${taken}: the name is taken in YAML. Use toJSON().`, { path: taken });
    }
  }
  return writeYaml(document);
}

/**
 * What `toYAML` was given. Every value is checked as if it were written by hand, and its history names its line.
 * Classes are found by name as by `fromJSON`; tags of YAML are refused, aliases are not expanded.
 *
 * @throws ConfigError with all that is wrong, and line and column of each.
 */
export function fromYAML(text: string, options: ReadOptions = {}): unknown {
  const parsed = parseYaml(checkText(text, options.maxBytes ?? longestWritten));
  return readDocument(parsed, origin(), options);
}

// Configs further inside are written in a list of their own: people lose track, and parsers their stack.
const deepestInside = 16;
const longestLine = 80;
// YAML finds a key only where its colon comes soon.
const longestKey = 500;

/** The YAML of a document. */
function writeYaml(document: JsonDocument): string {
  const writer = new Writer(document);
  const apart = Array.from(writer.apart, (number) => `\n  - ${writer.config(number, 4).trimStart()}`);
  const configs = apart.length === 0 ? '' : `\nconfigs:${apart.join('')}`;
  return `format: ${format}\nversion: ${version}${configs}\nroot:${writer.value(document.root, 2)}\n`;
}

class Writer {
  /** The configs in the list, by number. */
  readonly apart = new Set<number>();
  private readonly configs: readonly JsonConfig[];
  private readonly uses: number[];
  private readonly anchors = new Map<number, string>();

  constructor(document: JsonDocument) {
    this.configs = document.configs;
    this.uses = this.configs.map(() => 0);
    const levels: number[] = [];
    for (const [number, { values }] of this.configs.entries()) {
      let deepest = 0;
      const look = (value: JsonValue, depth: number): void => {
        const held = heldNumber(value);
        if (held !== undefined) {
          this.uses[held]! += 1;
          if (!this.apart.has(held)) deepest = Math.max(deepest, depth + levels[held]!);
          return;
        }
        deepest = Math.max(deepest, depth);
        if (typeof value !== 'object' || value === null) return;
        for (const part of Object.values(value)) look(part, depth + 1);
      };
      for (const value of Object.values(values)) look(value, 1);
      levels.push(deepest);
      if (deepest >= deepestInside) this.apart.add(number);
    }
    const count = (value: JsonValue): void => {
      const held = heldNumber(value);
      if (held !== undefined) this.uses[held]! += 1;
      else if (typeof value === 'object' && value !== null) Object.values(value).forEach(count);
    };
    count(document.root);
  }

  /** What stands behind a key or dash that is followed by lines indented by `indent`; begins with a space or a line break. */
  value(value: JsonValue, indent: number): string {
    const held = heldNumber(value);
    if (held !== undefined) {
      const known = this.anchors.get(held);
      return known === undefined ? this.config(held, indent) : ` *${known}`;
    }
    if (typeof value !== 'object' || value === null) return ` ${scalar(value)}`;
    const short = flow(value);
    if (short !== undefined && short.length + indent <= longestLine) return ` ${short}`;
    if (Array.isArray(value)) return this.list(value, indent);
    const entries = Object.entries(value);
    if (entries.some(([key]) => key.length > longestKey)) return this.value({ $record: entries }, indent);
    return this.fields(entries, indent);
  }

  /** A config at the place where it stands first. */
  config(number: number, indent: number): string {
    const { class: name, kind, tags, values } = this.configs[number]!;
    const head: [string, JsonValue][] = [['$class', name]];
    if (kind !== undefined) head.push(['$kind', kind]);
    if (tags !== undefined) head.push(['$tags', tags]);
    let anchor = '';
    if (this.uses[number]! > 1 || this.apart.has(number)) {
      anchor = `${name.replace(/\W/g, '')}${number}`;
    }
    // The anchor counts once the config is complete: none contains itself.
    const text = this.fields([...head, ...Object.entries(values)], indent);
    if (anchor === '') return text;
    this.anchors.set(number, anchor);
    return ` &${anchor}${text}`;
  }

  private fields(entries: readonly [string, JsonValue][], indent: number): string {
    const pad = `\n${' '.repeat(indent)}`;
    return entries.map(([key, value]) => `${pad}${scalar(key)}:${this.value(value, indent + 2)}`).join('');
  }

  private list(items: readonly JsonValue[], indent: number): string {
    const pad = `\n${' '.repeat(indent)}- `;
    return items
      .map((item) => {
        const text = this.value(item, indent + 2);
        // What would begin on the next line begins behind the dash.
        return pad + (text.startsWith('\n') ? text.slice(indent + 3) : text.slice(1));
      })
      .join('');
  }
}

function heldNumber(value: JsonValue): number | undefined {
  if (!isRecord(value)) return undefined;
  return typeof value.$config === 'number' ? value.$config : undefined;
}

/** A value without configs on one line; undefined where that would be long, or is not possible. */
function flow(value: JsonValue): string | undefined {
  if (typeof value !== 'object' || value === null) {
    const text = scalar(value);
    return text.length > longestLine ? undefined : text;
  }
  if (heldNumber(value) !== undefined) return undefined;
  const named = isRecord(value) && Object.keys(value).length === 1 ? value.$number : undefined;
  if (typeof named === 'string') return namedNumbers.get(named)!;
  const parts: string[] = [];
  let length = 0;
  for (const [key, part] of Object.entries(value)) {
    const text = flow(part as JsonValue);
    if (text === undefined) return undefined;
    parts.push(Array.isArray(value) ? text : `${scalar(key)}: ${text}`);
    length += parts.at(-1)!.length + 2;
    if (length > longestLine) return undefined;
  }
  return Array.isArray(value) ? `[${parts.join(', ')}]` : `{${parts.join(', ')}}`;
}

const namedNumbers = new Map([
  ['NaN', '.nan'],
  ['Infinity', '.inf'],
  ['-Infinity', '-.inf'],
  ['-0', '-0.0'],
]);

// What some reader of YAML takes for something else than a text.
const words = new Set(['true', 'false', 'null', 'yes', 'no', 'on', 'off', 'y', 'n']);

function scalar(value: null | boolean | number | string): string {
  if (typeof value !== 'string') return String(value);
  const isPlain =
    /^[A-Za-z_$](?:[\w$./()+-]| (?=[\w$./()+-]))*$/.test(value) && !words.has(value.toLowerCase());
  if (isPlain) return value;
  // JSON's form of a text is YAML's too, but for characters that YAML takes for line breaks, or does not take.
  return JSON.stringify(value).replaceAll(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
