/** @file The drafts that a recipe of `derive` edits. */
import { proxyFor } from '../nodes/config.js';
import { Defaults, type Draft, type DraftSession, seenFrom } from '../nodes/configNode.js';
import { ConfigNode, collectNodes, copyContainers, usedLate } from '../nodes/node.js';
import { recordedWrites } from '../nodes/record.js';

/** The drafts of one run of a recipe: one for each config, however it is reached. */
export class Session implements DraftSession {
  closed = false;
  /** Drafts of configs that existed before, by what they are drafts of. */
  readonly drafts = new Map<ConfigNode, ConfigNode>();
  /** Configs that the recipe made and put into a draft: they are drafts of themselves. */
  readonly adopted = new Set<ConfigNode>();
  /** The number of the last write before. */
  readonly firstWrite = recordedWrites();
  private readonly owned = new Set<ConfigNode>();
  private readonly start = ConfigNode.count;

  draftOf(node: ConfigNode): ConfigNode {
    if (node.draft?.session === this) return node;
    if (this.closed) throw usedLate(node);
    if (this.isNew(node)) {
      this.adopt(node);
      return node;
    }
    let draft = this.drafts.get(node);
    if (draft === undefined) this.drafts.set(node, (draft = this.newDraft(node)));
    return draft;
  }

  private newDraft(node: ConfigNode): ConfigNode {
    const draft = new ConfigNode(node.info, node.kind, node.values);
    node.defaults ??= new Defaults(node);
    draft.defaults = node.defaults;
    draft.containers = node.containers && copyOfMap(node.containers);
    draft.tags = node.tags;
    draft.last = node.last;
    draft.writes = node.writes;
    draft.writesAtBirth = node.writesAtBirth;
    draft.defaultDepth = node.defaultDepth;
    draft.draft = { base: node, session: this } satisfies Draft;
    proxyFor(draft);
    // A draft of a draft starts from what that one is now.
    if (node.draft !== undefined) this.own(draft);
    return draft;
  }

  own(draft: ConfigNode): void {
    if (draft.draft!.base === draft || this.owned.has(draft)) return;
    this.owned.add(draft);
    const values = Object.create(null) as Record<string, unknown>;
    for (const name in draft.values) values[name] = copyContainers(draft.values[name]);
    draft.values = values;
  }

  /** A default belongs to the config that it is a default of. */
  isNew(node: ConfigNode): boolean {
    for (let at = node; ; at = at.defaultOf) {
      const isDraft = at.draft !== undefined && at.draft.base !== at;
      if (isDraft || at.serial <= this.start || at.defaultOf === null) return false;
      if (at.defaultOf === undefined) return true;
    }
  }

  private adopt(root: ConfigNode): void {
    const open = [root];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node.draft !== undefined || !this.isNew(node)) continue;
      node.draft = { base: node, session: this };
      this.adopted.add(node);
      for (const name in node.values) collectNodes(node.values[name], open);
      for (const handedOut of [node.defaults, node.containers]) {
        for (const value of handedOut?.values() ?? []) collectNodes(value, open);
      }
    }
  }

  close(): void {
    this.closed = true;
    for (const node of this.adopted) node.draft = undefined;
  }

  /** What a config that stands in `node`, or in its draft, is a draft of. */
  baseOf(node: ConfigNode, held: ConfigNode): ConfigNode {
    if (held.draft?.session === this) return held.draft.base;
    return node.draft?.session === this || this.isNew(held) ? held : seenFrom(node, held);
  }
}

function copyOfMap(map: ReadonlyMap<string, unknown>): Map<string, unknown> {
  return new Map([...map].map(([name, value]) => [name, copyContainers(value)]));
}
