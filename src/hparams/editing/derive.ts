/** @file Copy-on-write edits: the result shares all unwritten parts with the original. */
import { ConfigError, refusePromise } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { sameTags } from '../nodes/carriers.js';
import { ConfigNode, type DraftSession, nodeOf, type Write } from '../nodes/configNode.js';
import { getOrMake, isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { copyFields, copyNode, holdSwapped, type Swap, swapConfigs } from '../nodes/fieldValues.js';
import {
  explicitValue,
  heldNames,
  heldValue,
  isExplicit,
  nodesHeld,
  nodesIn,
  touchedValue,
} from '../nodes/held.js';
import { recordedWrites } from '../nodes/record.js';
import type { AnyConfig } from '../types.js';
import { isSameStep } from '../walking/paths.js';
import { type Edge, fieldEdges, walk } from '../walking/walk.js';

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

/** One edit: its drafts, created on first read or insertion, and their results. */
export class Session implements DraftSession {
  closed = false;
  /** After the recipe has ended, unread parts are taken from the original. */
  private hasEnded = false;
  /** Drafts of the configs that were read in it, or inserted into it. */
  private readonly drafts = new Map<ConfigNode, ConfigNode>();
  /** Configs made by the recipe: they are in the draft, and in the result, themselves. */
  private readonly made = new Set<ConfigNode>();
  /** Configs of the draft that were written, or whose defaults may have been: no others can differ. */
  private readonly written = new Set<ConfigNode>();
  /** Drafts that differ from their originals in more than their parts. */
  private readonly changed = new Set<ConfigNode>();
  private readonly results = new Map<unknown, unknown>();
  private readonly start = ConfigNode.count;
  private readonly firstWrite = recordedWrites();

  take(node: ConfigNode): ConfigNode {
    if (node.draft === this) return node;
    if (!this.isNew(node)) return getOrMake(this.drafts, node, () => this.draftOf(node));
    walk(node.proxy, {
      children: (each, path) => fieldEdges(each, path, touchedValue).filter((edge) => this.isNew(edge.node)),
      leave: (each) => {
        this.adopt(each);
        swapHeld(each, (held) => this.take(held));
      },
    });
    return node;
  }

  private draftOf(original: ConfigNode): ConfigNode {
    const draft = copyFields(original, original.kind, ({ values }, name, value) => {
      if (typeof value === 'object' && value !== null) this.holdUnread(values, name, value);
      else values[name] = value;
    });
    draft.draft = this;
    draft.draftOf = original;
    return draft;
  }

  /** Puts a value into a draft whose configs become drafts when it is read. */
  private holdUnread(values: ConfigNode['values'], name: string, value: object): void {
    const settle = (own: unknown): unknown => {
      Object.defineProperty(values, name, {
        value: own,
        writable: true,
        enumerable: true,
        configurable: true,
      });
      return own;
    };
    const get = (): unknown =>
      this.hasEnded ? value : settle(swapConfigs(value, (held) => this.take(held)));
    Object.defineProperty(values, name, { get, set: settle, enumerable: true, configurable: true });
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
    this.written.add(owner);
    if (this.made.has(owner)) this.made.add(node);
  }

  wrote(node: ConfigNode): void {
    this.written.add(node);
  }

  close(): void {
    this.closed = true;
    for (const node of this.made) node.draft = undefined;
  }

  /** Result of a draft: its original, if nothing in it changed. @throws ConfigError if it contains itself. */
  resultOf(draft: ConfigNode): ConfigNode {
    if (!this.hasEnded) this.end();
    const original = draft.draftOf;
    // No other draft changed, so this one's former parts are unchanged.
    const isAlone = [...this.changed].every((node) => node === draft);
    const unchanged = new Set(isAlone && original !== undefined ? nodesHeld(original) : []);
    walk(draft.proxy, {
      results: this.results,
      children: (node, path) => {
        const edges = fieldEdges(node, path, explicitValue);
        const ahead = node === draft ? edges.filter((edge) => !unchanged.has(this.baseOf(edge.node))) : edges;
        return ahead.map((edge) => this.inDraft(edge));
      },
      leave: (node) => this.finish(node),
    });
    this.settleHistories();
    return this.become(draft);
  }

  private end(): void {
    this.hasEnded = true;
    for (const node of this.written) {
      const original = node.draftOf;
      if (original !== undefined && !this.isLike(node, original)) this.changed.add(node);
    }
  }

  private baseOf(node: ConfigNode): ConfigNode {
    return (node.draft === this && node.draftOf) || node;
  }

  /** The edge in the draft, where unread configs are still originals. */
  private inDraft(edge: Edge): Edge {
    const node = this.drafts.get(edge.node);
    return node === undefined ? edge : { node, path: edge.path };
  }

  private finish(node: ConfigNode): ConfigNode {
    if (this.made.has(node)) {
      swapHeld(node, this.become);
      return node;
    }
    const original = this.baseOf(node);
    // A default of a draft has no original.
    const isOther = this.changed.has(node) || original.draft === this;
    const isSame = !isOther && nodesHeld(original).every((held) => this.become(held) === held);
    return isSame ? original : copyNode(node, this.become);
  }

  private readonly become: Swap = (held) => {
    const node = this.drafts.get(held) ?? held;
    return (this.results.get(node) as ConfigNode | undefined) ?? this.baseOf(node);
  };

  /** Replaces written drafts in the histories of this recipe by their results. */
  private settleHistories(): void {
    const settle = (leaf: unknown): unknown => {
      const node = nodeOf(leaf);
      return node?.draft === this && !this.made.has(node) ? this.become(node).proxy : leaf;
    };
    const seen = new Set<Write>();
    for (const node of this.results.keys() as Iterable<ConfigNode>) {
      for (let write = node.last; write !== undefined; write = write.previous) {
        if (write.sequence <= this.firstWrite || seen.has(write)) break;
        seen.add(write);
        const { value, kind } = write;
        if (typeof value === 'object' && kind !== 'tags')
          (write as { value: unknown }).value = mapContainers(value, settle);
      }
    }
  }

  /** Whether a draft equals its original in its class, tags and values, apart from its parts. */
  private isLike(draft: ConfigNode, original: ConfigNode): boolean {
    if (draft.info !== original.info || draft.kind !== original.kind) return false;
    if (!sameTags(draft.tags, original.tags)) return false;
    const isWritten = draft.writes !== original.writes;
    return draft.info.allFields.every(
      (field) =>
        isExplicit(draft, field.name) === isExplicit(original, field.name) &&
        this.isSame(explicitValue(draft, field), explicitValue(original, field), isWritten),
    );
  }

  /** Whether `value` is `before`, drafts standing for their originals. */
  private isSame(value: unknown, before: unknown, isWritten: boolean): boolean {
    if (Object.is(value, before)) return true;
    const node = nodeOf(value);
    if (node !== undefined) return this.baseOf(node) === nodeOf(before);
    const parts = partsOf(value);
    const oldParts = partsOf(before);
    if (parts === undefined || parts.length !== oldParts?.length || nodeOf(before) !== undefined)
      return false;
    // Beside its parts, a container of another kind may hold more: where it may have been written, it counts as changed.
    if (Array.isArray(value) !== Array.isArray(before) || (isWritten && !isContainer(value))) return false;
    return parts.every(([step, part], i) => {
      const [oldStep, oldPart] = oldParts[i]!;
      return isSameStep(step, oldStep) && this.isSame(part, oldPart, isWritten);
    });
  }
}

/** Replaces in place the configs that a node holds. */
function swapHeld(node: ConfigNode, swap: Swap): void {
  for (const name of heldNames(node)) {
    const value = heldValue(node, name);
    if (nodesIn(value).some((held) => swap(held) !== held)) holdSwapped(node, name, value, swap);
  }
}
