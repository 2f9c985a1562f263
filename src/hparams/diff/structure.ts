/** @file One of the two structures that are compared: its configs by number, and what is known of each. */

import { touchedValue } from '../nodes/held.js';
import type { ConfigNode } from '../nodes/node.js';
import type { PathLink } from '../walking/paths.js';
import { type Edge, fieldEdges, walk } from '../walking/walk.js';
import type { Contents, KnownContents } from './contents.js';
import type { Path } from './types.js';

/**
 * The configs of a structure, numbered in the order in which they are met, outer before inner; what is known of them
 * stands in arrays by number.
 */
export class Structure implements KnownContents {
  readonly nodes: ConfigNode[] = [];
  /** The numbers of their contents. */
  readonly contents: number[] = [];
  /** The config in which each was met first, or -1. */
  readonly owners: number[] = [];
  /** What each is in the other structure, or -1. */
  readonly partners: number[] = [];
  /** Those that stand in more than one place. */
  readonly shared = new Set<number>();
  private readonly paths: Path[] = [];
  private readonly numbers = new Map<unknown, unknown>();
  private order: number[] | undefined;
  private grew = false;

  constructor(
    private readonly root: unknown,
    private readonly table: Contents,
  ) {
    this.add(root);
  }

  /** The number of a config; undefined for one that was not met. */
  find(node: ConfigNode): number | undefined {
    return this.numbers.get(node) as number | undefined;
  }

  /** The number of a config. Defaults that were not there before are added. */
  numberOf(node: ConfigNode): number {
    const known = this.find(node);
    if (known !== undefined) return known;
    this.grew = true;
    this.add(node.proxy);
    return this.find(node)!;
  }

  contentOf(node: ConfigNode): number {
    return this.contents[this.numberOf(node)]!;
  }

  /** The path by which a config was met first. */
  pathOf(number: number): Path {
    return this.paths[number];
  }

  /** The numbers of all configs in the order in which they are met now, outer before inner. */
  inOrder(): Iterable<number> {
    return this.order ?? this.nodes.keys();
  }

  /** Finds the order, owners and paths anew where defaults were made since. */
  settle(): void {
    if (!this.grew) return;
    this.order = [];
    const open: number[] = [];
    walk(this.root, {
      children: shownEdges,
      enter: (node, path) => {
        const number = this.numberOf(node);
        this.order!.push(number);
        this.paths[number] = path;
        this.owners[number] = open.at(-1) ?? -1;
        open.push(number);
      },
      leave: () => open.pop(),
      again: (node) => this.shared.add(this.numberOf(node)),
    });
  }

  private add(root: unknown): void {
    const open: number[] = [];
    walk(root, {
      children: shownEdges,
      enter: (node, path) => {
        this.owners.push(open.at(-1) ?? -1);
        open.push(this.nodes.push(node) - 1);
        this.paths.push(path);
        this.contents.push(-1);
        this.partners.push(-1);
      },
      leave: (node) => {
        const number = open.pop()!;
        this.contents[number] = this.table.ofConfig(node, this);
        return number;
      },
      again: (node) => this.shared.add(this.find(node)!),
      results: this.numbers,
    });
  }
}

/** Whether the field has a value of its own, if only a default that was handed out, which may stand elsewhere too. */
export function isTouched(node: ConfigNode, name: string): boolean {
  return name in node.values || node.defaults?.has(name) === true;
}

/** The configs that `node` holds in fields that were touched. */
export function shownEdges(node: ConfigNode, path: PathLink | undefined): Edge[] {
  return fieldEdges(node, path, touchedValue, true);
}
