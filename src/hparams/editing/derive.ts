/** @file Copy-on-write editing of configs: new configs for those that a recipe changed, and for all that hold them. */

import { ConfigError } from '../errors.js';
import { refusePromise } from '../fields/asynchronous.js';
import { showValue } from '../fields/describe.js';
import { hasCarried, isCarrier } from '../nodes/carriers.js';
import { proxyFor } from '../nodes/config.js';
import { Defaults } from '../nodes/configNode.js';
import { isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { handlerOf } from '../nodes/containerTypes.js';
import { ConfigNode, collectNodes, nodeOf, usedLate, type Write } from '../nodes/node.js';
import { sameTags } from '../nodes/nodeTags.js';
import type { AnyConfig } from '../types.js';
import { isSameStep } from '../walking/paths.js';
import { Session } from './drafts.js';

/**
 * An edited copy: `recipe` writes to a draft, with the checks of direct writes, and the result differs from `config`
 * only there. The original is untouched, parts that were not written are the same objects, a config used in several
 * places is edited in all of them, and without a change the result is `config` itself.
 *
 * A config that is put into the draft, the original of one of its parts too, is read back as a draft and has its
 * edits in the result alone; one that the recipe made stands in the result itself.
 */
export function derive<C extends AnyConfig>(config: C, recipe: (draft: C) => void): C {
  const root = nodeOf(config);
  if (root === undefined) throw new ConfigError(`derive() takes a config, got ${showValue(config)}.`);
  const session = new Session();
  try {
    const returned: unknown = recipe(session.draftOf(root).proxy as C);
    refusePromise(returned, 'The function given to derive()', 'the edit ends when it returns');
    return finishDrafts(session, root).proxy as C;
  } finally {
    session.close();
  }
}

/** The edited copy of `root`. */
function finishDrafts(session: Session, root: ConfigNode): ConfigNode {
  const changed = new Set<ConfigNode>();
  const placed = new Set<ConfigNode>();
  for (const [base, draft] of session.drafts) {
    if (isChanged(draft, base)) changed.add(base);
    if (draft.writesAtBirth !== base.writesAtBirth) placed.add(base);
  }
  if (changed.size === 0 && placed.size === 0) return root;
  const result = new Result(session, changed, placed);
  const final = result.finalOf(root, changed.size === 1 && changed.has(root) && placed.size === 0);
  result.settleNew();
  result.settleHistory();
  return final;
}

class Result {
  private readonly done = new Map<ConfigNode, ConfigNode>();
  /** The edited copies that were made. */
  private readonly finals = new Set<ConfigNode>();
  /** New configs that hold drafts, which have to go once nothing can fail any more. */
  private readonly holders: ConfigNode[] = [];

  constructor(
    private readonly session: Session,
    private readonly changed: ReadonlySet<ConfigNode>,
    /** Defaults that were put elsewhere too, and those that hold one: where they are defaults they become values. */
    private readonly placed: Set<ConfigNode>,
  ) {}

  /** The final node of `root`: inner ones first, each once, without recursion. */
  finalOf(root: ConfigNode, onlyRoot: boolean): ConfigNode {
    const { done } = this;
    const entered = new Set<ConfigNode>();
    const open: { node: ConfigNode; held: ReadonlySet<ConfigNode> | undefined }[] = [
      { node: root, held: undefined },
    ];
    for (let frame = open.at(-1); frame !== undefined; frame = open.at(-1)) {
      const { node } = frame;
      if (frame.held !== undefined) {
        open.pop();
        done.set(node, this.finished(node, frame.held));
      } else if (done.has(node)) open.pop();
      else {
        if (node.draft?.session.closed === true) throw usedLate(node);
        entered.add(node);
        frame.held = this.heldBy(node, onlyRoot && node === root);
        for (const held of frame.held) {
          if (done.has(held)) continue;
          if (entered.has(held)) throw selfContaining(held);
          open.push({ node: held, held: undefined });
        }
      }
    }
    return done.get(root)!;
  }

  /** What a node's values, edited or not, hold; with `onlyNew`, what they did not hold before. */
  private heldBy(node: ConfigNode, onlyNew: boolean): Set<ConfigNode> {
    const draft = this.session.drafts.get(node) ?? node;
    const held = this.basesIn(node, Object.values(draft.values));
    if (onlyNew) {
      for (const old of this.basesIn(node, Object.values(node.values))) held.delete(old);
      return held;
    }
    for (const handedOut of [draft.defaults, draft.containers]) {
      for (const [name, value] of handedOut ?? []) {
        if (!(name in draft.values)) for (const base of this.basesIn(node, [value])) held.add(base);
      }
    }
    return held;
  }

  private basesIn(node: ConfigNode, values: readonly unknown[]): Set<ConfigNode> {
    const nodes: ConfigNode[] = [];
    for (const value of values) collectNodes(value, nodes);
    return new Set(nodes.map((held) => this.session.baseOf(node, held)));
  }

  private finished(node: ConfigNode, held: ReadonlySet<ConfigNode>): ConfigNode {
    const { session } = this;
    const isReplaced = [...held].some((each) => this.done.get(each) !== each);
    if (node.writesAtBirth >= 0 && [...held].some((each) => this.placed.has(each))) this.placed.add(node);
    if (session.isNew(node)) {
      this.holders.push(node);
      return node;
    }
    const source = session.drafts.get(node) ?? node;
    if (!isReplaced && !this.changed.has(node) && !this.holdsPlaced(source)) return node;
    const final = new ConfigNode(source.info, node.kind);
    const swap = this.swapper(node);
    for (const name in source.values) final.values[name] = mapContainers(source.values[name], swap);
    node.defaults ??= new Defaults(node);
    final.defaults = source.defaults;
    if (source.containers !== undefined) {
      final.containers = new Map(
        [...source.containers].map(([name, value]) => [name, mapContainers(value, swap)]),
      );
    }
    this.keepDefaults(final, swap);
    final.tags = source.tags;
    final.last = source.last;
    final.writes = source.writes;
    proxyFor(final);
    this.finals.add(final);
    return final;
  }

  /** Makes values of the defaults that differ from those of the original, or stand elsewhere too. */
  private keepDefaults(node: ConfigNode, swap: (leaf: unknown) => unknown): void {
    for (const [name, config] of node.defaults ?? []) {
      if (name in node.values) continue;
      const swapped = swap(config);
      if (swapped !== config || this.isPlaced(config)) node.values[name] = swapped;
    }
    for (const [name, value] of node.containers ?? []) {
      if (name in node.values || !(this.isPlaced(value) || this.isEdited(value))) continue;
      node.values[name] = value;
    }
  }

  /** Whether a container, its configs replaced already, holds another config than the original's. */
  private isEdited(value: unknown): boolean {
    const nodes: ConfigNode[] = [];
    collectNodes(value, nodes);
    return nodes.some((node) => this.finals.has(node));
  }

  private isPlaced(value: unknown): boolean {
    if (this.placed.size === 0) return false;
    const nodes: ConfigNode[] = [];
    collectNodes(value, nodes);
    return nodes.some((node) => this.placed.has(node));
  }

  private holdsPlaced(node: ConfigNode): boolean {
    return [node.defaults, node.containers].some((handedOut) =>
      [...(handedOut ?? [])].some(([name, value]) => !(name in node.values) && this.isPlaced(value)),
    );
  }

  private swapper(node: ConfigNode): (leaf: unknown) => unknown {
    return (leaf) => {
      const held = nodeOf(leaf);
      if (held === undefined) return leaf;
      const base = this.session.baseOf(node, held);
      return (this.done.get(base) ?? base).proxy;
    };
  }

  /** Puts into the configs that the recipe made what their drafts have become. */
  settleNew(): void {
    for (const node of this.holders) {
      const swap = this.swapper(node);
      for (const name in node.values) node.values[name] = swapInPlace(node.values[name], swap);
      for (const [name, value] of node.containers ?? []) node.containers!.set(name, swapInPlace(value, swap));
      this.keepDefaults(node, swap);
    }
    this.holders.length = 0;
  }

  /** Puts into the histories of this recipe what the drafts that were written have become. */
  settleHistory(): void {
    const seen = new Set<Write>();
    for (const node of [...this.session.drafts.values(), ...this.session.adopted]) {
      for (let write = node.last; write !== undefined; write = write.previous) {
        if (write.sequence <= this.session.firstWrite || seen.has(write)) break;
        seen.add(write);
        const { value, kind } = write;
        if (typeof value !== 'object' || value === null || kind === 'tags') continue;
        (write as { value: unknown }).value = mapContainers(value, (leaf) => this.pastLeaf(leaf));
      }
    }
    this.settleNew();
  }

  /** What a draft that was written somewhere has become, though it may be in the result no more. */
  private pastLeaf(leaf: unknown): unknown {
    const draft = nodeOf(leaf)?.draft;
    if (draft?.session !== this.session) return leaf;
    try {
      return this.finalOf(draft.base, false).proxy;
    } catch (error) {
      // What was taken out again may contain itself, or the drafts of a recipe that ended.
      if (error instanceof ConfigError) return draft.base.proxy;
      throw error;
    }
  }
}

/** `value` with other configs in its containers: arrays and records stay the objects that they are. */
function swapInPlace(value: unknown, swap: (leaf: unknown) => unknown): unknown {
  if (!isContainer(value)) return handlerOf(value) === undefined ? swap(value) : mapContainers(value, swap);
  for (const key of Object.keys(value)) {
    const part = (value as Record<string, unknown>)[key];
    (value as Record<string, unknown>)[key] = swapInPlace(part, swap);
  }
  return value;
}

/** Whether a draft is other than what it is a draft of: in its values, class, tags or defaults. */
function isChanged(draft: ConfigNode, base: ConfigNode): boolean {
  return (
    draft.info !== base.info ||
    !sameTags(draft.tags, base.tags) ||
    forgotDefault(draft, base) ||
    !sameValues(draft, base)
  );
}

function forgotDefault(draft: ConfigNode, base: ConfigNode): boolean {
  if (draft.defaults !== base.defaults) return true;
  return [...(draft.draft!.forgotten ?? [])].some((name) => {
    const nodes: ConfigNode[] = [];
    collectNodes(base.containers?.get(name), nodes);
    return nodes.length > 0;
  });
}

function sameValues(draft: ConfigNode, base: ConfigNode): boolean {
  if (draft.values === base.values) return true;
  const names = Object.keys(draft.values);
  if (names.length !== Object.keys(base.values).length) return false;
  return names.every((name) => name in base.values && isSame(draft.values[name], base.values[name], draft));
}

/** Whether a draft has in a place what its base has there; the draft of what stands there is no change. */
function isSame(value: unknown, before: unknown, draft: ConfigNode): boolean {
  if (Object.is(value, before)) return true;
  const held = nodeOf(value);
  const old = nodeOf(before);
  if (held !== undefined && old !== undefined) {
    const { base } = draft.draft!;
    const session = draft.draft!.session as Session;
    return session.baseOf(base, held) === session.baseOf(base, old) || isSameCarrier(held, old, draft);
  }
  if (held !== undefined || old !== undefined || !isSameKind(value, before)) return false;
  const parts = partsOf(value);
  const oldParts = partsOf(before);
  if (parts === undefined || parts.length !== oldParts?.length) return false;
  return parts.every(([step, part], i) => {
    const [oldStep, oldPart] = oldParts[i]!;
    return isSameStep(step, oldStep) && isSame(part, oldPart, draft);
  });
}

/** Carriers are copied wherever they are written: one is as good as another. */
function isSameCarrier(a: ConfigNode, b: ConfigNode, draft: ConfigNode): boolean {
  if (!isCarrier(a) || !isCarrier(b) || !sameTags(a.tags, b.tags) || hasCarried(a) !== hasCarried(b))
    return false;
  return isSame(a.values.value, b.values.value, draft);
}

/** Whether two containers can be told apart by their parts alone. Others may have more to them than their parts. */
function isSameKind(a: unknown, b: unknown): boolean {
  if (isContainer(a) && isContainer(b)) return Array.isArray(a) === Array.isArray(b);
  if (a instanceof Set && b instanceof Set) return true;
  if (!(a instanceof Map && b instanceof Map) || a.size !== b.size) return false;
  const keys = [...b.keys()];
  return [...a.keys()].every((key, i) => Object.is(key, keys[i]));
}

function selfContaining(node: ConfigNode): ConfigError {
  return new ConfigError(
    `A config must not contain itself: an edit in derive() put a ${node.info.name} config into itself. ` +
      'A deepCopy() of the original may stand in it.',
  );
}
