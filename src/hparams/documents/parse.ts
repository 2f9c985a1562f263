/** @file YAML and JSON as plain values with the place of every part. */
import { createRequire } from 'node:module';
import type { Alias, CST, Document, Pair, ParsedNode, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { ConfigError } from '../errors.js';
import { append } from '../nodes/containers.js';
import {
  type DocumentProblem,
  deepestDocument,
  longestWritten,
  mostValues,
  throwProblems,
} from './format.js';
import { formatSpot, Lines, type Parsed } from './text.js';

const require = createRequire(import.meta.url);
// Its 70 files are loaded for the first document that needs them, and most runs read none.
const yamlPackage = (): typeof import('yaml') => require('yaml');

/**
 * What `use` makes of a JSON text. It is parsed fast; where `use` finds something wrong, it is called again with the
 * places of all parts, unless the text is so long that they would take too much space.
 *
 * @throws ConfigError of `use`, and with line and column for what is no JSON, and for keys given twice.
 */
export function parseJson<R>(text: string, file: string | undefined, use: (parsed: Parsed) => R): R {
  const parsed: Parsed = { value: jsonIn(text, file), file };
  const isShort = text.length <= longestWritten;
  // JSON.parse keeps the last of equal keys. What people write is short enough to be asked.
  if (isShort && writtenKeys(text) !== measure(parsed.value).keys) withPlaces(parsed, text);
  try {
    return use(parsed);
  } catch (error) {
    const placed = isShort && error instanceof ConfigError ? withPlaces(parsed, text) : parsed;
    if (placed === parsed) throw error;
    return use(placed);
  }
}

function jsonIn(text: string, file: string | undefined): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const { message } = cause as Error;
    const [, token] = /^Unexpected token (.*?), .* is not valid JSON$/s.exec(message) ?? [];
    const problem = token === undefined ? message.replace(/ at position \d+.*$/s, '') : `unexpected ${token}`;
    const place = formatSpot(file, new Lines(text).spotAt(faultIn(text, message)));
    throw new ConfigError(`This is not JSON: ${problem[0]!.toLowerCase()}${problem.slice(1)}.`, {
      place,
      cause,
    });
  }
}

/** Where JSON.parse, which said `message` of it, stops to understand a text. */
function faultIn(text: string, message: string): number {
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  // The message may lack the position: then the fault is at the end of the shortest beginning that has it.
  let low = 0;
  for (let high = text.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (isCutOff(text.slice(0, middle))) low = middle + 1;
    else high = middle;
  }
  return isCutOff(text) ? text.length : Math.max(low - 1, 0);
}

/** Whether the text is the beginning of some JSON. */
function isCutOff(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    return (
      /^Unexpected end|^Unterminated string/.test(message) || message.includes(`position ${text.length}`)
    );
  }
}

/** How many keys a JSON text has: colons outside of strings. */
function writtenKeys(text: string): number {
  let count = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 34) inString = !inString;
    else if (code === 58 && !inString) count += 1;
  }
  return count;
}

/** How many keys a parsed value has, and how deep it is. */
function measure(value: unknown): { keys: number; depth: number } {
  let keys = 0;
  let depth = 0;
  for (let level = [value]; level.length > 0; depth += 1) {
    const below: unknown[] = [];
    for (const owner of level) {
      if (typeof owner !== 'object' || owner === null) continue;
      const parts = Object.values(owner);
      if (!Array.isArray(owner)) keys += parts.length;
      append(below, parts);
    }
    level = below;
  }
  return { keys, depth };
}

/**
 * What JSON.parse gave, with the places of its parts: JSON is YAML. As it is where its values are nested too deep.
 *
 * @throws ConfigError for keys given twice.
 */
export function withPlaces(parsed: Parsed, text: string): Parsed {
  const { value, file } = parsed;
  // Nodes of YAML are made by recursion.
  if (measure(value).depth > deepestDocument + 2) return parsed;
  const lines = new Lines(text);
  const yaml = yamlPackage();
  const tokens = new yaml.Parser().parse(text);
  const composer = new yaml.Composer({ prettyErrors: false, uniqueKeys: false, resolveKnownTags: false });
  const [document] = composer.compose(tokens, true, text.length);
  const spots: Spots = new WeakMap();
  const open: [Node, unknown][] = [[(document as Document.Parsed).contents, value]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [node, owner] = next;
    if (typeof owner !== 'object' || owner === null || !yaml.isCollection(node)) continue;
    const known = new Map<string | number, number>();
    spots.set(owner, known);
    for (const [i, item] of node.items.entries()) {
      const [key, at, part] = yaml.isPair(item)
        ? [String((item.key as Scalar).value), item.key as Node, item.value as Node]
        : [i, item as Node, item as Node];
      if (known.has(key)) {
        const [first, place] = [known.get(key)!, offsetOf(at)].map((each) =>
          formatSpot(file, lines.spotAt(each)),
        );
        const problem = `This is not JSON: the key ${JSON.stringify(key)} is given twice, first at ${first}.`;
        throw new ConfigError(problem, { place });
      }
      known.set(key, offsetOf(at));
      open.push([part, (owner as Record<string | number, unknown>)[key]]);
    }
  }
  return { value, file, spotOf: spotsIn(spots, lines) };
}

type Spots = WeakMap<object, Map<string | number, number>>;

function spotsIn(spots: Spots, lines: Lines): NonNullable<Parsed['spotOf']> {
  return (owner, key) => {
    const offset = spots.get(owner)?.get(key);
    return offset === undefined ? undefined : lines.spotAt(offset);
  };
}

// Characters that YAML forbids, but the parser lets through.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

/** Reads one YAML document. Aliases lead to one object; nothing is run or expanded. @throws ConfigError with the line and column of all that is wrong. */
export function parseYaml(text: string, file?: string): Parsed {
  const lines = new Lines(text);
  const place = (offset: number): string => formatSpot(file, lines.spotAt(offset));
  const control = forbidden.exec(text);
  if (control !== null) {
    throw new ConfigError('This is not YAML: it holds a control character.', { place: place(control.index) });
  }
  const document = compose(text, place);
  throwProblems(
    document.errors.map(({ message, pos }): DocumentProblem => {
      return {
        path: '',
        problem: `This is not YAML: ${message.replaceAll('\n', ' ')}.`,
        place: place(pos[0]),
      };
    }),
    'This is not YAML',
    file,
  );
  const lowering = new Lowering(place);
  const value = lowering.lower(document.contents);
  return { value, file, spotOf: spotsIn(lowering.spots, lines), mostValues };
}

function refuse(problem: string, place: string): never {
  throw new ConfigError(`This is not YAML for configs: ${problem}.`, { place });
}

/** The text's one document. */
function compose(text: string, place: (offset: number) => string): Document.Parsed {
  const yaml = yamlPackage();
  const tokens = [...new yaml.Parser().parse(text)];
  // Nodes are made by recursion, and where the stack ends the whole process may.
  const deep = firstBelow(tokens, deepestDocument);
  if (deep !== undefined) refuse('its values are nested too deep', place(deep.offset));
  // The composer compares each key with all others, which for many keys takes minutes: they are compared below.
  const composer = new yaml.Composer({ prettyErrors: false, uniqueKeys: false, resolveKnownTags: false });
  const [document, second] = composer.compose(tokens, true, text.length);
  if (second !== undefined) refuse('it holds a second document', place(second.range[0]));
  return document as Document.Parsed;
}

/** A collection that stands in more than `depth` others, if there is one. */
function firstBelow(tokens: readonly CST.Token[], depth: number): CST.Token | undefined {
  const open = tokens.map((token) => ({ token, around: 0 }));
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { token, around } = at;
    if (token.type === 'document' && token.value) open.push({ token: token.value, around });
    if (!('items' in token)) continue;
    if (around > depth) return token;
    for (const { key, value } of token.items)
      for (const part of [key, value]) if (part) open.push({ token: part, around: around + 1 });
  }
  return undefined;
}

type Node = ParsedNode | Alias | null;

const coreTags = /^tag:yaml\.org,2002:(map|seq|str|int|float|bool|null)$/;

class Lowering {
  readonly spots: Spots = new WeakMap();
  private readonly anchors = new Map<string, unknown>();
  private readonly open = new Set<unknown>();
  private readonly yaml = yamlPackage();

  constructor(private readonly place: (offset: number) => string) {}

  lower(node: Node): unknown {
    if (node === null) return null;
    if (this.yaml.isAlias(node)) return this.alias(node);
    if (node.tag !== undefined && !coreTags.test(node.tag)) {
      this.fail(node, `the tag ${node.tag} means nothing here; a config is written as {$class: Name, …}`);
    }
    if (this.yaml.isMap(node)) return this.map(node);
    if (this.yaml.isSeq(node)) return this.list(node);
    if (node.anchor !== undefined) this.anchors.set(node.anchor, node.value);
    return node.value;
  }

  private alias(node: Alias): unknown {
    if (!this.anchors.has(node.source)) this.fail(node, `there is no &${node.source} before the alias`);
    const value = this.anchors.get(node.source);
    if (this.open.has(value)) this.fail(node, `*${node.source} contains itself`);
    return value;
  }

  private list(node: YAMLSeq): unknown[] {
    const made: unknown[] = [];
    const spots = this.begin(node, made);
    for (const item of node.items as Node[]) {
      spots.set(made.length, offsetOf(item));
      made.push(this.lower(item));
    }
    this.open.delete(made);
    return made;
  }

  private map(node: YAMLMap): Record<string, unknown> {
    const made = Object.create(null) as Record<string, unknown>;
    const spots = this.begin(node, made);
    for (const { key, value } of node.items as unknown as Pair<Node, Node>[]) {
      const name = this.key((key ?? node) as NonNullable<Node>);
      if (Object.hasOwn(made, name)) {
        const first = this.place(spots.get(name)!);
        this.fail(key!, `the key ${JSON.stringify(name)} is given twice, first at ${first}`);
      }
      spots.set(name, offsetOf(key));
      made[name] = this.lower(value);
    }
    this.open.delete(made);
    return made;
  }

  private begin(node: YAMLMap | YAMLSeq, made: object): Map<string | number, number> {
    const spots = new Map<string | number, number>();
    this.spots.set(made, spots);
    this.open.add(made);
    if (node.anchor !== undefined) this.anchors.set(node.anchor, made);
    return spots;
  }

  /** A key as it is written: `1` and `true` are names here. */
  private key(node: NonNullable<Node>): string {
    if (!this.yaml.isScalar(node) || (node.tag !== undefined && !coreTags.test(node.tag))) {
      return this.fail(node, 'a key is a name or a text');
    }
    const { value, source } = node as Scalar;
    return typeof value === 'string' ? value : (source ?? String(value));
  }

  private fail(node: NonNullable<Node>, problem: string): never {
    return refuse(problem, this.place(offsetOf(node)));
  }
}

function offsetOf(node: Node | undefined): number {
  return node?.range?.[0] ?? 0;
}
