/** @file Numbers that are equal for values with equal content, found in linear time. */
import type { FieldInfo } from '../fields/fields.js';
import { partsOf } from '../nodes/containers.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';

/** What gives the numbers of configs that were looked at already. */
export interface KnownContents {
  contentOf(node: ConfigNode): number;
}

// Longer texts are kept once, whatever the number of contents they are part of.
const longestText = 64;
// A diamond of many levels has more paths than numbers can count.
const mostWeight = 1000;

/** Numbers contents. Sharing is not looked at: the numbers say what is alike, not what is the same. */
export class Contents {
  /** By a text that says all of a content, the contents of configs in it by their numbers. */
  private readonly numbers = new Map<string, number>();
  /** Of what is compared as it is: classes, functions, long texts, and objects that nobody can look into. */
  private readonly identities = new Map<unknown, number>();
  /** By content, those of configs. */
  private readonly weights: number[] = [];

  /** The number of a value's content. */
  of(value: unknown, known: KnownContents): number {
    const node = nodeOf(value);
    return node === undefined ? this.numberOf(this.textOf(value, known), 0) : known.contentOf(node);
  }

  /** The number of a config's content: its class, kind and explicit values. What it holds is known. */
  ofConfig(node: ConfigNode, known: KnownContents): number {
    let text = `${node.kind}${this.identify(node.info)}`;
    let weight = 0;
    const { allFields } = node.info;
    for (let i = 0; i < allFields.length; i++) {
      const field = allFields[i]!;
      if (!isExplicit(node, field.name)) continue;
      const value = rawValue(node, field);
      if (isDefault(value, field)) continue;
      text += ` ${i} ${this.textOf(value, known)}`;
      const child = nodeOf(value);
      weight += 1 + (child === undefined ? 0 : this.weightOf(known.contentOf(child)));
    }
    return this.numberOf(text, Math.min(weight, mostWeight));
  }

  /** How many explicit values a config with this content has, those of its sub-configs included. */
  weightOf(content: number): number {
    return this.weights[content]!;
  }

  private numberOf(text: string, weight: number): number {
    let number = this.numbers.get(text);
    if (number === undefined) this.numbers.set(text, (number = this.weights.push(weight) - 1));
    return number;
  }

  /** Says where it ends, so that no two lists of values have one text. */
  private textOf(value: unknown, known: KnownContents): string {
    // As Map compares numbers: NaN is like NaN, 0 like -0.
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') {
      return value.length > longestText ? this.identify(value) : `"${value.length} ${value}`;
    }
    if (typeof value === 'boolean' || value === undefined || value === null) return String(value);
    if (typeof value !== 'object') return this.identify(value);
    const node = nodeOf(value);
    if (node !== undefined) return `@${known.contentOf(node)}`;
    if (Array.isArray(value)) return `[${value.map((item) => this.textOf(item, known)).join()}]`;
    if (value instanceof Date) return `date${value.getTime()}`;
    if (value instanceof RegExp) return `regexp${this.identify(String(value))}`;
    return this.textOfKeyed(value, known);
  }

  private textOfKeyed(value: object, known: KnownContents): string {
    const parts = partsOf(value);
    if (parts === undefined) return this.identify(value);
    const named = parts.map(
      ([segment, part]) => `${this.identify(formatSegment(segment, true))} ${this.of(part, known)}`,
    );
    return `{${this.identify(value.constructor)} ${named.sort().join()}}`;
  }

  private identify(value: unknown): string {
    let number = this.identities.get(value);
    if (number === undefined) this.identities.set(value, (number = this.identities.size));
    return `#${number}`;
  }
}

/** An explicit default is like an unset one. */
function isDefault(value: unknown, field: FieldInfo): boolean {
  return field.default.kind === 'value' && Object.is(value, field.default.make());
}
