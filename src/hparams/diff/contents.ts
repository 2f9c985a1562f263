/** @file Numbers that are equal for values with equal content, found in linear time. */
import { partsOf } from '../nodes/containers.js';
import { type ConfigNode, collectNodes, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import { walk } from '../walking/traverse.js';

/** Numbers contents. Sharing is not looked at: the numbers say what is alike, not what is the same. */
export class Contents {
  /** Of what is compared by its parts: a text that names them. */
  private readonly numbers = new Map<string, number>();
  /** Of what is compared as it is: numbers, strings, functions, and objects that nobody can look into. */
  private readonly ofLeaf = new Map<unknown, number>();
  private readonly ofNode = new Map<ConfigNode, number>();
  private given = 0;
  private readonly weights = new Map<number, number>();

  /** The number of a value's content. */
  of(value: unknown): number {
    const node = nodeOf(value);
    if (node !== undefined) return this.ofConfig(node);
    const key = this.keyOf(value);
    return key === undefined ? this.ofIdentity(value) : this.intern(key);
  }

  /** The number of a config's content: its class, kind and explicit values. */
  ofConfig(node: ConfigNode): number {
    const known = this.ofNode.get(node);
    if (known !== undefined) return known;
    walk(node.proxy, {
      children: (inner, path) =>
        this.ofNode.has(inner)
          ? []
          : explicitNodes(inner).map((child) => ({ node: child, path: { parent: path, segment: '' } })),
      leave: (inner) => {
        if (!this.ofNode.has(inner)) this.ofNode.set(inner, this.numberOf(inner));
      },
    });
    return this.ofNode.get(node)!;
  }

  /** How many explicit values a config with this content has, those of its sub-configs included. */
  weightOf(number: number): number {
    return this.weights.get(number) ?? 0;
  }

  private numberOf(node: ConfigNode): number {
    let key = `${this.ofIdentity(node.info)} ${node.kind}`;
    let weight = 0;
    for (const field of node.info.fields.values()) {
      if (!isExplicit(node, field.name)) continue;
      const value = rawValue(node, field);
      // An explicit default is like an unset one.
      if (field.default.kind === 'value' && Object.is(value, field.default.make())) continue;
      const number = this.of(value);
      key += ` ${field.name}=${number}`;
      weight += 1 + this.weightOf(number);
    }
    const number = this.intern(key);
    // A diamond of many levels has more paths than numbers can count.
    this.weights.set(number, Math.min(weight, 1000));
    return number;
  }

  /** A text for what is compared by its parts; undefined for anything else. */
  private keyOf(value: unknown): string | undefined {
    if (typeof value !== 'object' || value === null) return undefined;
    if (value instanceof Date) return `date ${value.getTime()}`;
    if (value instanceof RegExp) return `regexp ${value}`;
    const parts = partsOf(value);
    if (parts === undefined) return undefined;
    const keyed = parts.map(([segment, part]) => `${formatSegment(segment, true)}:${this.of(part)}`);
    if (Array.isArray(value)) return `[${keyed.join(' ')}`;
    return `{${this.ofIdentity(value.constructor)} ${keyed.sort().join(' ')}`;
  }

  private ofIdentity(value: unknown): number {
    let number = this.ofLeaf.get(value);
    if (number === undefined) this.ofLeaf.set(value, (number = ++this.given));
    return number;
  }

  private intern(key: string): number {
    let number = this.numbers.get(key);
    if (number === undefined) this.numbers.set(key, (number = ++this.given));
    return number;
  }
}

function explicitNodes(node: ConfigNode): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  for (const field of node.info.fields.values()) {
    if (isExplicit(node, field.name)) collectNodes(rawValue(node, field), nodes);
  }
  return nodes;
}
