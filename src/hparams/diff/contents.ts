/** @file Numbers that are equal for values with equal content, found in linear time. */
import type { FieldInfo } from '../fields/fields.js';
import { partsOf } from '../nodes/containers.js';
import { type ConfigNode, isExplicit, type NodeKind, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import { Sequences } from './sequences.js';

/** What gives the numbers of configs that were looked at already. */
export interface KnownContents {
  contentOf(node: ConfigNode): number;
}

// What a sequence, or a part of one, is about.
const config = 1;
const held = 2;
const integer = 3;
const float = 4;
const text = 5;
const longText = 6;
const truth = 7;
const nothing = 8;
const list = 9;
const keyed = 10;
const date = 11;
const regexp = 12;
const itself = 13;

const kinds: Readonly<Record<NodeKind, number>> = { config: 0, partial: 1, argFactory: 2 };
// Longer texts are looked up, so that they are not kept character by character.
const longestText = 24;
// A diamond of many levels has more paths than numbers can count.
const mostWeight = 1000;

const floats = new Float64Array(1);
const halves = new Int32Array(floats.buffer);

/** Numbers contents. Sharing is not looked at: the numbers say what is alike, not what is the same. */
export class Contents {
  private readonly sequences = new Sequences();
  private readonly texts = new Map<string, number>();
  /** Of what is compared as it is: classes, functions, and objects that nobody can look into. */
  private readonly identities = new Map<unknown, number>();
  /** By content, those of configs. */
  private readonly weights: number[] = [];
  /** How many records and other containers with keys were met, whose parts are alike in any order. */
  keyedMet = 0;

  /** How many numbers were given, from 0 on. */
  get count(): number {
    return this.sequences.count;
  }

  /** The number of a value's content. */
  of(value: unknown, known: KnownContents): number {
    const node = nodeOf(value);
    if (node !== undefined) return known.contentOf(node);
    const from = this.sequences.begin();
    this.write(value, known);
    return this.end(from, 0);
  }

  /** The number of a config's content: its class, kind and explicit values. What it holds is known. */
  ofConfig(node: ConfigNode, known: KnownContents): number {
    const { sequences } = this;
    const from = sequences.begin();
    sequences.push(config);
    sequences.push(identify(this.identities, node.info));
    sequences.push(kinds[node.kind]);
    let weight = 0;
    const { allFields } = node.info;
    for (let i = 0; i < allFields.length; i++) {
      const field = allFields[i]!;
      if (!isExplicit(node, field.name)) continue;
      const value = rawValue(node, field);
      if (isDefault(value, field)) continue;
      sequences.push(i);
      this.write(value, known);
      const child = nodeOf(value);
      weight += 1 + (child === undefined ? 0 : this.weightOf(known.contentOf(child)));
    }
    return this.end(from, Math.min(weight, mostWeight));
  }

  /** How many explicit values a config with this content has, those of its sub-configs included. */
  weightOf(content: number): number {
    return this.weights[content]!;
  }

  private end(from: number, weight: number): number {
    const number = this.sequences.end(from);
    if (number === this.weights.length) this.weights.push(weight);
    return number;
  }

  private write(value: unknown, known: KnownContents): void {
    const { sequences } = this;
    if (typeof value === 'number') this.writeNumber(value);
    else if (typeof value === 'string') this.writeText(value);
    else if (typeof value === 'boolean') {
      sequences.push(truth);
      sequences.push(Number(value));
    } else if (value === undefined || value === null) {
      sequences.push(nothing);
      sequences.push(Number(value === null));
    } else if (typeof value === 'object') this.writeObject(value, known);
    else this.writeIdentity(value);
  }

  /** As Map compares numbers: NaN is like NaN, 0 like -0. */
  private writeNumber(value: number): void {
    const { sequences } = this;
    if ((value | 0) === value) {
      sequences.push(integer);
      sequences.push(value);
      return;
    }
    floats[0] = Number.isNaN(value) ? Number.NaN : value;
    sequences.push(float);
    sequences.push(halves[0]!);
    sequences.push(halves[1]!);
  }

  private writeText(value: string): void {
    const { sequences } = this;
    if (value.length > longestText) {
      sequences.push(longText);
      sequences.push(identify(this.texts, value));
      return;
    }
    sequences.push(text);
    sequences.push(value.length);
    for (let i = 0; i < value.length; i++) sequences.push(value.charCodeAt(i));
  }

  private writeIdentity(value: unknown): void {
    this.sequences.push(itself);
    this.sequences.push(identify(this.identities, value));
  }

  private writeObject(value: object, known: KnownContents): void {
    const { sequences } = this;
    const node = nodeOf(value);
    if (node !== undefined) {
      sequences.push(held);
      sequences.push(known.contentOf(node));
    } else if (Array.isArray(value)) {
      sequences.push(list);
      sequences.push(value.length);
      for (let i = 0; i < value.length; i++) this.write(value[i], known);
    } else if (value instanceof Date) {
      sequences.push(date);
      this.writeNumber(value.getTime());
    } else if (value instanceof RegExp) {
      sequences.push(regexp);
      sequences.push(identify(this.texts, String(value)));
    } else this.writeKeyed(value, known);
  }

  private writeKeyed(value: object, known: KnownContents): void {
    const parts = partsOf(value);
    if (parts === undefined) {
      this.writeIdentity(value);
      return;
    }
    this.keyedMet += 1;
    const named = parts.map(([segment, part]) => ({
      name: identify(this.texts, formatSegment(segment, true)),
      content: this.of(part, known),
    }));
    named.sort((a, b) => a.name - b.name || a.content - b.content);
    const { sequences } = this;
    sequences.push(keyed);
    sequences.push(identify(this.identities, value.constructor));
    sequences.push(named.length);
    for (const { name, content } of named) {
      sequences.push(name);
      sequences.push(content);
    }
  }
}

/** An explicit default is like an unset one. */
function isDefault(value: unknown, field: FieldInfo): boolean {
  return field.default.kind === 'value' && Object.is(value, field.default.make());
}

function identify<T>(numbers: Map<T, number>, value: T): number {
  let number = numbers.get(value);
  if (number === undefined) numbers.set(value, (number = numbers.size));
  return number;
}
