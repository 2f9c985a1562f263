/** @file YAML as plain values with the place of every part. Aliases lead to one object; nothing is run or expanded. */
import type { Alias, CST, Document, Pair, ParsedNode, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import { ConfigError } from '../errors.js';
import { deepestDocument, mostValues } from './format.js';
import { type DocumentProblem, throwProblems } from './problems.js';
import { formatSpot, Lines, type Parsed } from './text.js';
import { yamlPackage } from './yamlPackage.js';

// Characters that YAML forbids, but the parser lets through.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

/** Reads one YAML document. @throws ConfigError with the line and column of all that is wrong. */
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
  const spotOf = (owner: object, key: string | number) => {
    const offset = lowering.spots.get(owner)?.get(key);
    return offset === undefined ? undefined : lines.spotAt(offset);
  };
  return { value, file, spotOf, mostValues };
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
  readonly spots = new WeakMap<object, Map<string | number, number>>();
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
