/** @file Configs of one of two compared structures, with numbers that are equal for equal contents. */
import type { FieldInfo } from '../fields/fields.js';
import { partsOf } from '../nodes/containers.js';
import { touchedValue } from '../nodes/held.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment, type PathLink } from '../walking/paths.js';
import { type Edge, fieldEdges, walk } from '../walking/walk.js';

/** A config of a structure, with its place and partner. */
export class Member {
  /** The number of its content. */
  content = -1;
  /** Its counterpart in the other structure. */
  partner: Member | undefined;
  /** Whether its values are its partner's, with configs that are partners. */
  isSettled = false;
  /** The next config of the structure with this content. */
  alike: Member | undefined;
  /** Whether it is in more than one place. */
  isShared = false;

  /**
   * @param path by which it was met first.
   * @param owner the config in which it was met first.
   */
  constructor(
    readonly node: ConfigNode,
    public path: PathLink | undefined,
    public owner: Member | undefined,
  ) {}
}

/** The configs of a structure in the order in which they are met, outer before inner. */
export class Structure {
  members: Member[] = [];
  private readonly known = new Map<unknown, unknown>();
  private grew = false;

  constructor(
    private readonly root: unknown,
    private readonly contents: Contents,
  ) {
    this.add(root);
  }

  /** The member that a config is; undefined for one that was not met. */
  find(node: ConfigNode): Member | undefined {
    return this.known.get(node) as Member | undefined;
  }

  /** The member that a config is. Defaults that were not there before are added. */
  of(node: ConfigNode): Member {
    const known = this.find(node);
    if (known !== undefined) return known;
    this.grew = true;
    this.add(node.proxy);
    return this.find(node)!;
  }

  /** Finds the order, owners and paths again where defaults were made since. */
  settle(): void {
    if (!this.grew) return;
    this.members = [];
    const open: Member[] = [];
    walk(this.root, {
      children: shownEdges,
      enter: (node, path) => {
        const member = this.of(node);
        member.path = path;
        member.owner = open.at(-1);
        this.members.push(member);
        open.push(member);
      },
      leave: () => open.pop(),
      again: (node) => (this.of(node).isShared = true),
    });
  }

  private add(root: unknown): void {
    const open: Member[] = [];
    walk(root, {
      children: shownEdges,
      enter: (node, path) => {
        const member = new Member(node, path, open.at(-1));
        this.members.push(member);
        open.push(member);
      },
      leave: (node) => {
        const member = open.pop()!;
        member.content = this.contents.ofConfig(node, this);
        return member;
      },
      again: (node) => (this.find(node)!.isShared = true),
      results: this.known,
    });
  }
}

/** The configs of a structure by content; those with equal content are linked by `alike`. */
export class ByContent {
  private readonly first = new Map<number, Member>();
  /** Where to continue looking for a free one, once all before it have partners. */
  private readonly next = new Map<number, Member>();

  constructor(members: readonly Member[]) {
    for (let i = members.length - 1; i >= 0; i -= 1) {
      const member = members[i]!;
      member.alike = this.first.get(member.content);
      this.first.set(member.content, member);
    }
  }

  /** The config with this content, if there is just one. */
  only(content: number): Member | undefined {
    const member = this.first.get(content);
    return member?.alike === undefined ? member : undefined;
  }

  /** The first config with this content that has no partner. */
  nextFree(content: number): Member | undefined {
    let member = this.next.get(content) ?? this.first.get(content);
    while (member?.partner !== undefined && member.alike !== undefined) member = member.alike;
    if (member !== undefined) this.next.set(content, member);
    return member?.partner === undefined ? member : undefined;
  }
}

/** The configs that `node` holds in fields that were touched. */
export function shownEdges(node: ConfigNode, path: PathLink | undefined): Edge[] {
  return fieldEdges(node, path, touchedValue, true);
}

// Longer texts are kept once, whatever the number of contents they are part of.
const longestText = 64;
// A diamond of many levels has more paths than numbers can count.
const mostWeight = 1000;

/** Numbers for contents: equal contents have equal numbers, whether or not they are one object. */
export class Contents {
  /** Numbers of contents by a complete text, with the contents of inner configs by their numbers. */
  private readonly numbers = new Map<string, number>();
  /** Numbers of values compared by identity: classes, functions, long texts, and opaque objects. */
  private readonly identities = new Map<unknown, number>();
  /** By content, those of configs. */
  private readonly weights: number[] = [];

  /** The number of a value's content. */
  of(value: unknown, structure: Structure): number {
    const node = nodeOf(value);
    return node === undefined ? this.numberOf(this.textOf(value, structure), 0) : structure.of(node).content;
  }

  /** Number of a config's content: its class, kind and explicit values, given the numbers of its parts. */
  ofConfig(node: ConfigNode, structure: Structure): number {
    let text = `${node.kind}${this.identify(node.info)}`;
    let weight = 0;
    const { allFields } = node.info;
    for (let i = 0; i < allFields.length; i++) {
      const field = allFields[i]!;
      if (!isExplicit(node, field.name)) continue;
      const value = rawValue(node, field);
      if (isDefault(value, field)) continue;
      text += ` ${i} ${this.textOf(value, structure)}`;
      const child = nodeOf(value);
      weight += 1 + (child === undefined ? 0 : this.weightOf(structure.of(child).content));
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

  /** A self-delimiting text, so that no two lists of values have the same text. */
  private textOf(value: unknown, structure: Structure): string {
    // As Map compares numbers: NaN is like NaN, 0 like -0.
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') {
      return value.length > longestText ? this.identify(value) : `"${value.length} ${value}`;
    }
    if (typeof value === 'boolean' || value === undefined || value === null) return String(value);
    if (typeof value !== 'object') return this.identify(value);
    const node = nodeOf(value);
    if (node !== undefined) return `@${structure.of(node).content}`;
    if (Array.isArray(value)) return `[${value.map((item) => this.textOf(item, structure)).join()}]`;
    if (value instanceof Date) return `date${value.getTime()}`;
    if (value instanceof RegExp) return `regexp${this.identify(String(value))}`;
    return this.textOfKeyed(value, structure);
  }

  private textOfKeyed(value: object, structure: Structure): string {
    const parts = partsOf(value);
    if (parts === undefined) return this.identify(value);
    const named = parts.map(
      ([segment, part]) => `${this.identify(formatSegment(segment, true))} ${this.of(part, structure)}`,
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
