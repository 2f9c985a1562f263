/** @file Edits of a deep copy: the result shares all unwritten parts with the original. */
import { ConfigError, refusePromise } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { ConfigNode, nodeOf } from '../nodes/configNode.js';
import { fillCopy, holdSwapped, type Swap, swapConfigs, unfilledCopy } from '../nodes/fieldValues.js';
import { explicitValue, heldNames, heldValue, isExplicit, nodesHeld, nodesIn } from '../nodes/held.js';
import { freezeExisting } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';
import type { PathLink } from '../walking/paths.js';
import { type Edge, fieldEdges, walk } from '../walking/walk.js';

/**
 * An edited copy: `recipe` writes to a draft, a deep copy, and the result differs from `config` only in what was
 * written. Unwritten parts are the same objects, a config used in several places is edited in all of them, and without a
 * write the result is `config` itself.
 *
 * A part of `config` itself that the recipe puts elsewhere in the draft is, in the result, what its copy has become.
 *
 * @throws ConfigError where the recipe writes to a config that was made before it, which would change the original.
 */
export function derive<C extends AnyConfig>(config: C, recipe: (draft: C) => void): C {
  if (nodeOf(config) === undefined)
    throw new ConfigError(`derive() takes a config, got ${showValue(config)}.`);
  const thaw = freezeExisting(
    'from within derive(), which edits its draft alone. Write to the draft, or put a deepCopy() there first.',
  );
  try {
    const copy = new EditedCopy(config);
    const returned: unknown = recipe(copy.draft);
    refusePromise(returned, 'The function given to derive()', 'the edit ends when it returns');
    return copy.settle(copy.draft);
  } finally {
    thaw();
  }
}

/** A deep copy to be edited, and the originals that stand in the result for all that was not. */
export class EditedCopy<T> {
  readonly draft: T;
  private readonly root: T;
  private readonly start = ConfigNode.count;
  private readonly copies = new Map<ConfigNode, ConfigNode>();
  private readonly originals = new Map<ConfigNode, ConfigNode>();
  private readonly results = new Map<unknown, unknown>();

  /** @param root a config, or containers of configs. */
  constructor(root: T) {
    this.root = root;
    this.draft = swapConfigs(root, this.take) as T;
  }

  /** The result for the edited draft, or for a value made of its parts. @throws ConfigError if it contains itself. */
  settle(edited: T): T {
    this.fillHolders();
    walk(swapConfigs(edited, this.own), {
      results: this.results,
      children: (node, path) => this.edges(node, path),
      leave: (node) => this.finish(node),
    });
    return swapConfigs(edited, this.become) as T;
  }

  /** The copy of an original, made on first use: what it holds is copied when its values are asked for. */
  private readonly take: Swap = (original) => {
    let copy = this.copies.get(original);
    if (copy === undefined) {
      copy = unfilledCopy(original, original.kind, this.fill);
      // A recipe in the recipe, for which it may be made, must not write to it.
      copy.serial = this.start + 1;
      this.copies.set(original, copy);
      this.originals.set(copy, original);
    }
    return copy;
  };

  private readonly fill = (copy: ConfigNode): void => fillCopy(copy, this.originals.get(copy)!, this.take);

  /** Fills the copies of all that was written to, and of what holds it in any place. */
  private fillHolders(): void {
    const edited = new Set<ConfigNode>();
    const fill = (original: ConfigNode): void => {
      edited.add(original);
      void this.take(original).values;
    };
    for (const [copy, original] of this.originals) if (isEdited(copy, original)) fill(original);
    // The root is in no other config.
    if (edited.size === Number(edited.has(nodeOf(this.root)!))) return;
    walk(this.root, {
      leave: (original) => {
        if (nodesHeld(original).some((held) => edited.has(held))) fill(original);
      },
    });
  }

  /** The copy of an original, if it has one. */
  private readonly own: Swap = (node) => this.copies.get(node) ?? node;

  private readonly become: Swap = (held) => {
    const node = this.own(held);
    const unread = node.fill === undefined ? undefined : this.originals.get(node);
    return (this.results.get(node) as ConfigNode | undefined) ?? unread ?? node;
  };

  private edges(node: ConfigNode, path: PathLink | undefined): Edge[] {
    if (!this.isRecent(node) || node.fill !== undefined) return [];
    return fieldEdges(node, path, explicitValue)
      .map((edge) => ({ node: this.own(edge.node), path: edge.path }))
      .filter((edge) => edge.node.fill === undefined);
  }

  /** Whether a config is a copy or was made since: others were not edited, and hold nothing that was. */
  private isRecent(node: ConfigNode): boolean {
    return node.serial > this.start;
  }

  private finish(node: ConfigNode): ConfigNode {
    if (!this.isRecent(node) || node.fill !== undefined) return this.become(node);
    const original = this.originals.get(node);
    const isSame = original !== undefined && !isEdited(node, original);
    if (isSame && nodesHeld(node).every((held) => this.become(held) !== held)) return original;
    swapHeld(node, this.become);
    return node;
  }
}

/** Whether anything was written to a copy, or one of its defaults was put elsewhere, too. */
function isEdited(copy: ConfigNode, original: ConfigNode): boolean {
  if (copy.writes !== original.writes || copy.kind !== original.kind) return true;
  for (const name of copy.defaults?.keys() ?? []) if (isExplicit(copy, name)) return true;
  return false;
}

/** Replaces in place the configs that a node holds. */
function swapHeld(node: ConfigNode, swap: Swap): void {
  for (const name of heldNames(node)) {
    const value = heldValue(node, name);
    if (nodesIn(value).some((held) => swap(held) !== held)) holdSwapped(node, name, value, swap);
  }
}
