/** @file Stand-in for the old structure, made from a diff alone. */
import { newConfig } from '../nodes/config.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import type { Segment } from '../walking/paths.js';
import { type Diff, OldPart, type Path, splitPath } from './changes.js';

/** Placeholder for an item of a list that the diff does not mention. */
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
  private readonly nodes = new Map<Path, ConfigNode>();
  /** Holds the root, be it a config or a container. */
  private readonly top: Slot = {};

  constructor(private readonly diff: Diff) {}

  make(): unknown {
    const { changes, places, removed } = this.diff;
    for (const { path, info, kind } of places) this.nodes.set(path, nodeOf(newConfig(info, kind))!);
    for (const [path, node] of this.nodes) this.put(path, node.proxy);
    for (const part of removed) {
      for (const [name, value] of Object.entries(part.values))
        this.put({ parent: part.path, segment: name }, this.value(value));
    }
    for (const change of changes) {
      if ('old' in change && change.kind !== 'class' && change.kind !== 'kind')
        this.put(change.path, this.value(change.old));
      if ('length' in change) {
        const list = change.kind === 'insert' ? change.path : change.path?.parent;
        fill(this.container(list, 0), change.length);
      }
    }
    return this.top.root;
  }

  private value(value: unknown): unknown {
    return mapContainers(value, (leaf) =>
      leaf instanceof OldPart ? this.nodes.get(leaf.path)?.proxy : leaf,
    );
  }

  private put(path: Path, value: unknown): void {
    if (path === undefined) {
      this.top.root = value;
      return;
    }
    const container = this.container(path.parent, path.segment);
    if (typeof path.segment === 'number') fill(container, path.segment);
    container[keyOf(path.segment)] = value;
  }

  /** The container at `path`, created if missing: a config's values, or a list or record that fits `next`. */
  private container(path: Path, next: Segment): Slot {
    if (typeof next === 'string') return this.nodes.get(path)?.values ?? {};
    const { config, field, inner } = splitPath(path);
    const node = this.nodes.get(config);
    let slot: Slot = field === undefined || node === undefined ? this.top : node.values;
    const steps = [field ?? 'root', ...inner];
    for (const [i, step] of steps.entries()) {
      const key = keyOf(step);
      const held = slot[key];
      if (typeof held !== 'object' || held === null || nodeOf(held) !== undefined)
        slot[key] = typeof (steps[i + 1] ?? next) === 'number' ? [] : {};
      slot = slot[key] as Slot;
      const index = steps[i + 1];
      if (typeof index === 'number') fill(slot, index + 1);
    }
    return slot;
  }
}

/** Makes a list so long, where it is shorter. */
function fill(list: Slot, length: number): void {
  for (let at = (list as unknown as unknown[]).length; at < length; at += 1) list[at] = new UnknownItem();
}

function keyOf(segment: Segment): string | number {
  return typeof segment === 'object' ? segment.key : segment;
}
