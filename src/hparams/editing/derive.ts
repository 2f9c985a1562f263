/** @file Copy-on-write edits: a deep copy that in the end shares all that was not written with its original. */
import { ConfigError, refusePromise } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { sameTags } from '../nodes/carriers.js';
import { ConfigNode, type DraftSession, nodeOf, type Write } from '../nodes/configNode.js';
import { isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { copyNode, holdSwapped, type Swap } from '../nodes/fieldValues.js';
import { explicitValue, heldNames, heldValue, isExplicit, nodesIn, touchedValue } from '../nodes/held.js';
import { recordedWrites } from '../nodes/record.js';
import type { AnyConfig } from '../types.js';
import { isSameStep } from '../walking/paths.js';
import { fieldEdges, walk } from '../walking/walk.js';

/**
 * An edited copy: `recipe` writes to a draft, with the checks of direct writes, and the result differs from `config`
 * only there. The original is untouched, set parts that were not written are the same objects, a config used in several
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
    const draft = session.take(root);
    const returned: unknown = recipe(draft.proxy as C);
    refusePromise(returned, 'The function given to derive()', 'the edit ends when it returns');
    return session.resultOf(draft).proxy as C;
  } finally {
    session.close();
  }
}

/** One edit: copies to write to, and what they become. */
export class Session implements DraftSession {
  closed = false;
  /** What stands in the draft for each config that was put into it. */
  private readonly taken = new Map<unknown, unknown>();
  /** What a draft is a copy of. */
  private readonly originals = new Map<ConfigNode, ConfigNode>();
  /** Configs that the recipe made: they stand in the draft, and in the result, themselves. */
  private readonly made = new Set<ConfigNode>();
  private readonly results = new Map<unknown, unknown>();
  private readonly start = ConfigNode.count;
  private readonly firstWrite = recordedWrites();

  take(node: ConfigNode): ConfigNode {
    if (node.draft === this) return node;
    const swap = swapper(this.taken);
    walk(node.proxy, {
      results: this.taken,
      children: (each, path) => fieldEdges(each, path, this.isNew(each) ? touchedValue : explicitValue),
      leave: (each) => {
        if (each.draft === this) return each;
        const isNew = this.isNew(each);
        const own = isNew ? each : copyNode(each, swap);
        own.draft = this;
        if (isNew) {
          this.made.add(own);
          swapHeld(own, swap);
        } else this.originals.set(own, each);
        return own;
      },
    });
    return swap(node);
  }

  /** Whether the recipe made the config; a default is as new as the config whose default it is. */
  private isNew(node: ConfigNode): boolean {
    for (let at: ConfigNode | undefined = node; at !== undefined; at = at.defaultOf)
      if (at.serial <= this.start || at.draft !== undefined) return false;
    return true;
  }

  /** Makes a new config part of the draft. */
  adopt(node: ConfigNode): void {
    node.draft = this;
    this.made.add(node);
  }

  addDefault(node: ConfigNode, owner: ConfigNode): void {
    node.draft = this;
    if (this.made.has(owner)) this.made.add(node);
  }

  close(): void {
    this.closed = true;
    for (const node of this.made) node.draft = undefined;
  }

  /** What a draft has become: its original, where nothing in it was changed. @throws ConfigError where it contains itself. */
  resultOf(draft: ConfigNode): ConfigNode {
    const become = swapper(this.results);
    walk(draft.proxy, { results: this.results, leave: (node) => this.finish(node, become) });
    this.settleHistories();
    return become(draft);
  }

  private finish(node: ConfigNode, become: Swap): ConfigNode {
    if (this.made.has(node)) {
      swapHeld(node, become);
      return node;
    }
    const original = this.originals.get(node);
    if (original !== undefined && isUnchanged(node, original, become)) return original;
    return copyNode(node, become);
  }

  /** Puts into the histories of this recipe what the drafts that were written have become. */
  private settleHistories(): void {
    const become = (leaf: unknown): unknown => {
      const node = nodeOf(leaf);
      if (node === undefined || node.draft !== this || this.made.has(node)) return leaf;
      return ((this.results.get(node) ?? this.originals.get(node) ?? node) as ConfigNode).proxy;
    };
    const seen = new Set<Write>();
    for (const node of this.results.keys() as Iterable<ConfigNode>) {
      for (let write = node.last; write !== undefined; write = write.previous) {
        if (write.sequence <= this.firstWrite || seen.has(write)) break;
        seen.add(write);
        const { value, kind } = write;
        if (typeof value === 'object' && kind !== 'tags')
          (write as { value: unknown }).value = mapContainers(value, become);
      }
    }
  }
}

function swapper(known: ReadonlyMap<unknown, unknown>): Swap {
  return (held) => (known.get(held) as ConfigNode | undefined) ?? held;
}

/** Replaces in place the configs that a node holds. */
function swapHeld(node: ConfigNode, swap: Swap): void {
  for (const name of heldNames(node)) {
    const value = heldValue(node, name);
    if (nodesIn(value).some((held) => swap(held) !== held)) holdSwapped(node, name, value, swap);
  }
}

/** Whether a draft is as its original in its class, tags and values, once its parts are what they become. */
function isUnchanged(draft: ConfigNode, original: ConfigNode, become: Swap): boolean {
  if (draft.info !== original.info || draft.kind !== original.kind) return false;
  if (!sameTags(draft.tags, original.tags)) return false;
  const isWritten = draft.writes !== original.writes;
  return draft.info.allFields.every(
    (field) =>
      isExplicit(draft, field.name) === isExplicit(original, field.name) &&
      isSame(explicitValue(draft, field), explicitValue(original, field), become, isWritten),
  );
}

/** Whether `value` is `before` once its configs are what they become. */
function isSame(value: unknown, before: unknown, become: Swap, isWritten: boolean): boolean {
  const node = nodeOf(value);
  if (node !== undefined) return become(node) === nodeOf(before);
  if (Object.is(value, before)) return true;
  const parts = partsOf(value);
  const oldParts = partsOf(before);
  if (parts === undefined || parts.length !== oldParts?.length || nodeOf(before) !== undefined) return false;
  // Beside its parts, a container of another kind may hold more: where it may have been written, it counts as changed.
  if (Array.isArray(value) !== Array.isArray(before) || (isWritten && !isContainer(value))) return false;
  return parts.every(([step, part], i) => {
    const [oldStep, oldPart] = oldParts[i]!;
    return isSameStep(step, oldStep) && isSame(part, oldPart, become, isWritten);
  });
}
