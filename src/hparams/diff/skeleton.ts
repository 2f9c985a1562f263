/** @file As much of the old structure as a diff tells. */
import { newConfig } from '../nodes/config.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import type { Segment } from '../walking/paths.js';
import { type Diff, OldPart, type Path, PathTable, splitPath } from './types.js';

/** Stands for an item of a list that the diff does not tell. */
class UnknownItem {
  get [Symbol.toStringTag](): string {
    return 'value';
  }
}

type Slot = Record<string | number, unknown>;

/**
 * A stand-in for the structure that `diff` was made from, so that it can be shown without it: the configs that its paths
 * lead through, with the values that it changes or takes away. It is for the eye and for graphs alone: fields that the
 * diff does not touch look unset, and items that it does not tell are no values that a list would accept.
 */
export function skeletonFromDiff(diff: Diff): unknown {
  return new Skeleton(diff).make();
}

class Skeleton {
  private readonly table = new PathTable();
  private readonly nodes = new Map<Path, ConfigNode>();
  private readonly lengths = new Map<Path, number>();
  /** Holds the root, be it a config or a container. */
  private readonly top: Slot = {};

  constructor(private readonly diff: Diff) {}

  make(): unknown {
    for (const { path, info, kind } of this.diff.places) {
      this.nodes.set(this.table.intern(path), nodeOf(newConfig(info, kind))!);
    }
    for (const change of this.diff.changes) {
      if (!('length' in change)) continue;
      this.lengths.set(
        this.table.intern(change.kind === 'insert' ? change.path : change.path?.parent),
        change.length,
      );
    }
    for (const [path, node] of this.nodes) this.put(path, node.proxy);
    for (const part of this.diff.removed) {
      for (const name of Object.keys(part.values)) {
        this.put({ parent: part.path, segment: name }, this.value(part.values[name]));
      }
    }
    for (const change of this.diff.changes) {
      if (change.kind === 'insert') this.container(change.path, 0);
      else if ('old' in change && change.kind !== 'class' && change.kind !== 'kind')
        this.put(change.path, this.value(change.old));
    }
    return this.top.root;
  }

  private value(value: unknown): unknown {
    return mapContainers(value, (leaf) =>
      leaf instanceof OldPart ? this.nodes.get(this.table.intern(leaf.path))?.proxy : leaf,
    );
  }

  private put(path: Path, value: unknown): void {
    if (path === undefined) this.top.root = value;
    else this.container(path.parent, path.segment)[keyOf(path.segment)] = value;
  }

  /** What `path` leads to, made where it is not there yet: a config's values, a list or a record. */
  private container(path: Path, next: Segment): Slot {
    const { config, field, inner } = splitPath(path);
    const node = this.nodes.get(this.table.intern(config));
    let slot: Slot = field === undefined || node === undefined ? this.top : node.values;
    if (typeof next === 'string') return this.nodes.get(this.table.intern(path))?.values ?? {};
    let at: Path = field === undefined ? undefined : { parent: config, segment: field };
    let key: string | number = field ?? 'root';
    for (const segment of [...inner, undefined]) {
      const following = segment ?? next;
      if (typeof slot[key] !== 'object' || slot[key] === null || nodeOf(slot[key]) !== undefined) {
        slot[key] = typeof following === 'number' ? this.list(at, following) : {};
      }
      slot = slot[key] as Slot;
      if (segment === undefined) break;
      key = keyOf(segment);
      at = { parent: at, segment };
    }
    return slot;
  }

  private list(path: Path, index: number): unknown[] {
    const length = this.lengths.get(this.table.intern(path)) ?? index + 1;
    return Array.from({ length }, () => new UnknownItem());
  }
}

function keyOf(segment: Segment): string | number {
  return typeof segment === 'object' ? segment.key : segment;
}
