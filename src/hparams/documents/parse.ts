/** @file Parsers of YAML and JSON that know the place of every part. */
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
} from './document.js';
import { formatSpot, Lines, type Parsed, type Spot } from './text.js';

const require = createRequire(import.meta.url);
/** The package `yaml`. Its 70 files are loaded for the first document that needs them, and most runs read none. */
export const yamlPackage = (): typeof import('yaml') => require('yaml');

/**
 * The result of `use` for a JSON text. The text is parsed fast; if `use` fails, it runs again with the places of all
 * parts, unless the text is so long that they would take too much memory.
 *
 * @throws ConfigError of `use`, and with line and column for invalid JSON and duplicate keys.
 */
export function parseJson<R>(text: string, file: string | undefined, use: (parsed: Parsed) => R): R {
  const parsed: Parsed = { value: jsonIn(text, file), file };
  const isShort = text.length <= longestWritten;
  // JSON.parse keeps the last of equal keys. Texts written by hand are short enough to check.
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

/** Offset at which JSON.parse, which failed with `message`, gave up. */
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
 * A parsed JSON text with the places of its parts: JSON is YAML. As it is where its values are nested too deep.
 *
 * @throws ConfigError for keys given twice.
 */
export function withPlaces(parsed: Parsed, text: string): Parsed {
  // Nodes of YAML are made by recursion.
  if (measure(parsed.value).depth > deepestDocument + 2) return parsed;
  const lines = new Lines(text);
  const place = (offset: number): string => formatSpot(parsed.file, lines.spotAt(offset));
  const [document] = composed([...new (yamlPackage().Parser)().parse(text)], text);
  return lowered(document!, { file: parsed.file, lines, place, language: 'JSON' });
}

// Characters that YAML forbids, but the parser accepts.
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
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
  return { ...lowered(document, { file, lines, place, language: 'YAML for configs' }), mostValues };
}

/** The text's one document. */
function compose(text: string, place: (offset: number) => string): Document.Parsed {
  const tokens = [...new (yamlPackage().Parser)().parse(text)];
  // Nodes are made by recursion, and where the stack ends the whole process may.
  const deep = firstBelow(tokens, deepestDocument);
  const tooDeep = 'This is not YAML for configs: its values are nested too deep.';
  if (deep !== undefined) throw new ConfigError(tooDeep, { place: place(deep.offset) });
  const [document, second] = composed(tokens, text);
  const twice = 'This is not YAML for configs: it holds a second document.';
  if (second !== undefined) throw new ConfigError(twice, { place: place(second.range[0]) });
  return document!;
}

function composed(tokens: readonly CST.Token[], text: string): Document.Parsed[] {
  // The composer compares each key with all others, which for many keys takes minutes: they are compared below.
  const options = { prettyErrors: false, uniqueKeys: false, resolveKnownTags: false };
  return [...new (yamlPackage().Composer)(options).compose(tokens, true, text.length)] as Document.Parsed[];
}

/** A collection in more than `depth` others, if there is one. */
function firstBelow(tokens: readonly CST.Token[], depth: number): CST.Token | undefined {
  const open = tokens.map((token) => ({ token, level: 0 }));
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { token, level } = at;
    if (token.type === 'document' && token.value) open.push({ token: token.value, level });
    if (!('items' in token)) continue;
    if (level > depth) return token;
    for (const { key, value } of token.items)
      for (const part of [key, value]) if (part) open.push({ token: part, level: level + 1 });
  }
  return undefined;
}

type Node = ParsedNode | Alias | null;

/** A text to lower into plain values, with its name in messages. */
interface Source {
  readonly file: string | undefined;
  readonly lines: Lines;
  place(offset: number): string;
  readonly language: string;
}

/** The plain values of a document. @throws ConfigError for YAML that config files may not use. */
function lowered(document: Document.Parsed, source: Source): Parsed {
  const lowering = new Lowering(source);
  const value = lowering.lower(document.contents);
  const spotOf = (owner: object, key: string | number): Spot | undefined => {
    const offset = lowering.offsets.get(owner)?.get(key);
    return offset === undefined ? undefined : source.lines.spotAt(offset);
  };
  return { value, file: source.file, spotOf };
}

const coreTags = /^tag:yaml\.org,2002:(map|seq|str|int|float|bool|null)$/;

class Lowering {
  /** Offsets of the parts of arrays and records in the text. */
  readonly offsets = new WeakMap<object, Map<string | number, number>>();
  private readonly anchors = new Map<string, unknown>();
  private readonly open = new Set<unknown>();
  private readonly yaml = yamlPackage();

  constructor(private readonly source: Source) {}

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
    const offsets = this.begin(node, made);
    for (const item of node.items as Node[]) {
      offsets.set(made.length, offsetOf(item));
      made.push(this.lower(item));
    }
    this.open.delete(made);
    return made;
  }

  private map(node: YAMLMap): Record<string, unknown> {
    const made = Object.create(null) as Record<string, unknown>;
    const offsets = this.begin(node, made);
    for (const { key, value } of node.items as unknown as Pair<Node, Node>[]) {
      const name = this.key((key ?? node) as NonNullable<Node>);
      if (Object.hasOwn(made, name)) {
        const first = this.source.place(offsets.get(name)!);
        this.fail(key!, `the key ${JSON.stringify(name)} is given twice, first at ${first}`);
      }
      offsets.set(name, offsetOf(key));
      made[name] = this.lower(value);
    }
    this.open.delete(made);
    return made;
  }

  private begin(node: YAMLMap | YAMLSeq, made: object): Map<string | number, number> {
    const offsets = new Map<string | number, number>();
    this.offsets.set(made, offsets);
    this.open.add(made);
    if (node.anchor !== undefined) this.anchors.set(node.anchor, made);
    return offsets;
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
    const { language, place } = this.source;
    throw new ConfigError(`This is not ${language}: ${problem}.`, { place: place(offsetOf(node)) });
  }
}

function offsetOf(node: Node | undefined): number {
  return node?.range?.[0] ?? 0;
}
