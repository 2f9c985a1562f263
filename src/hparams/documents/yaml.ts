/** @file Configs as YAML that people read and edit. */
import type { Node, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { ConfigError } from '../errors.js';
import { origin } from '../nodes/record.js';
import { escaped } from '../walking/paths.js';
import {
  format,
  isRecord,
  type JsonConfig,
  type JsonDocument,
  type JsonValue,
  longestWritten,
  type ReadOptions,
  reservedNames,
  throwProblems,
  version,
} from './document.js';
import { encodeAll, readDocument } from './json.js';
import { parseYaml, yamlPackage } from './parse.js';
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
 * The inverse of `toYAML`. Every value is checked as if written in code, and its history has its line. Classes are
 * found by name as by `fromJSON`; tags of YAML are refused, aliases are not expanded.
 *
 * @throws ConfigError with all problems, and line and column of each.
 */
export function fromYAML(text: string, options: ReadOptions = {}): unknown {
  const parsed = parseYaml(checkText(text, options.maxBytes ?? longestWritten));
  return readDocument(parsed, origin(), options);
}

// Configs further inside are written in a list of their own: people lose track, and parsers their stack.
const deepestInside = 16;
const longestLine = 80;

/** The YAML of a document. */
function writeYaml({ modules, configs, root }: JsonDocument): string {
  const writer = new Writer(configs);
  const listed = configs.flatMap((_, number) => (writer.apart.has(number) ? [writer.config(number)] : []));
  const entries: [string, Node][] = [
    ['format', writer.value(format)],
    ['version', writer.value(version)],
    ...(listed.length === 0 ? [] : [['configs', writer.list(listed)] as [string, Node]]),
    ['root', writer.value(root)],
    ...(modules === undefined ? [] : [['modules', writer.value(modules)] as [string, Node]]),
  ];
  // Readers of YAML 1.1 take `yes` and the like for booleans.
  const document = new (yamlPackage().Document)(undefined, { compat: 'yaml-1.1' });
  document.contents = writer.record(entries);
  return document
    .toString({ flowCollectionPadding: false, lineWidth: 0 })
    .replaceAll(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, escaped);
}

// Between double quotes, where alone it can be escaped.
const quoted = /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u;

/** Makes nodes of YAML, in the order of the text: a config is a map where it is first, then an alias. */
class Writer {
  /** The configs in the list, by number. */
  readonly apart = new Set<number>();
  private readonly yaml = yamlPackage();
  private readonly made = new Map<number, YAMLMap>();

  constructor(private readonly configs: readonly JsonConfig[]) {
    const heights: number[] = [];
    const heightOf = (value: JsonValue): number => {
      if (typeof value !== 'object' || value === null) return 0;
      const held = heldNumber(value);
      if (held !== undefined) return this.apart.has(held) ? 0 : heights[held]!;
      return 1 + Object.values(value).reduce<number>((most, part) => Math.max(most, heightOf(part)), 0);
    };
    for (const [number, { values }] of configs.entries()) {
      heights.push(heightOf(values));
      if (heights[number]! > deepestInside) this.apart.add(number);
    }
  }

  value(value: JsonValue): Node {
    if (typeof value !== 'object' || value === null) return this.scalar(value);
    const held = heldNumber(value);
    if (held !== undefined) return this.config(held);
    const named = isRecord(value) && Object.keys(value).length === 1 ? value.$number : undefined;
    if (typeof named === 'string') return this.scalar(Number(named));
    const node = Array.isArray(value)
      ? this.list(value.map((item) => this.value(item)))
      : this.record(Object.entries(value).map(([key, part]) => [key, this.value(part)]));
    const text = JSON.stringify(value);
    node.flow = text.length <= longestLine && !text.includes('"$config":');
    return node;
  }

  config(number: number): Node {
    const known = this.made.get(number);
    const { class: name, kind, tags, values } = this.configs[number]!;
    if (known !== undefined) {
      known.anchor ??= `${name.replace(/\W/g, '')}${number}`;
      return new this.yaml.Alias(known.anchor);
    }
    const node = new this.yaml.YAMLMap();
    this.made.set(number, node);
    const head = { $class: name, ...(kind && { $kind: kind }), ...(tags && { $tags: tags }), ...values };
    node.items = this.record(Object.entries(head).map(([key, value]) => [key, this.value(value)])).items;
    return node;
  }

  list(items: readonly Node[]): YAMLSeq {
    const list = new this.yaml.YAMLSeq();
    list.items.push(...items);
    return list;
  }

  record(entries: readonly (readonly [string, Node])[]): YAMLMap {
    const record = new this.yaml.YAMLMap();
    record.items = entries.map(([key, value]) => new this.yaml.Pair(this.scalar(key), value));
    return record;
  }

  private scalar(value: null | boolean | number | string): Scalar {
    const scalar = new this.yaml.Scalar(value);
    if (typeof value === 'string' && quoted.test(value)) scalar.type = 'QUOTE_DOUBLE';
    return scalar;
  }
}

function heldNumber(value: JsonValue): number | undefined {
  if (!isRecord(value)) return undefined;
  return typeof value.$config === 'number' ? value.$config : undefined;
}
