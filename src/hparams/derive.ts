/** @file Copy-on-write editing of configs. */
import { Immer } from 'immer';
import { proxyFor } from './config.js';
import { mapContainers } from './containers.js';
import { showValue } from './describe.js';
import { ConfigError } from './errors.js';
import { ConfigNode, collectNodes, type Draft, nodeOf } from './node.js';
import { sameTags } from './nodeTags.js';
import type { AnyConfig } from './types.js';

// Immer drafts one config's record of values and the containers in it; which config is which is kept here, for
// immer knows trees and configs share. Nothing is frozen: values of a config stay writable.
const immer = new Immer({ autoFreeze: false });

type Values = Record<string, unknown>;

/**
 * An edited copy: `recipe` writes to a draft, with the checks of direct writes, and the result differs from `config`
 * only there. The original is untouched, parts that were not written are the same objects, a config used in several
 * places is edited in all of them, and without a change the result is `config` itself.
 */
export function derive<C extends AnyConfig>(config: C, recipe: (draft: C) => void): C {
  const root = nodeOf(config);
  if (root === undefined) throw new ConfigError(`derive() takes a config, got ${showValue(config)}.`);
  const session = new Session();
  try {
    const returned: unknown = recipe(session.draftOf(root).proxy as C);
    if (returned instanceof Promise) {
      throw new ConfigError(
        'The function given to derive() must not be async: the edit ends when it returns.',
      );
    }
    return session.finish(root).proxy as C;
  } finally {
    session.closed = true;
  }
}

/** What a draft wrote: its finished values and whether they differ from those it began with. */
interface Written {
  readonly values: Values;
  readonly changed: boolean;
}

class Session {
  closed = false;
  private readonly drafts = new Map<ConfigNode, ConfigNode>();
  private readonly owned = new Set<ConfigNode>();
  private readonly written = new Map<ConfigNode, Written>();

  /** The draft of a node: one for each, however often it is reached. Drafts and new configs are their own. */
  draftOf(node: ConfigNode): ConfigNode {
    if (node.draft?.session === this) return node;
    let draft = this.drafts.get(node);
    if (draft === undefined) {
      draft = new ConfigNode(node.info, node.kind, node.values);
      node.defaults ??= new Map();
      draft.defaults = node.defaults;
      draft.containers = node.containers && (mapValues(node.containers) as Map<string, unknown>);
      draft.tags = node.tags;
      draft.last = node.last;
      draft.writes = node.writes;
      draft.writesAtBirth = node.writesAtBirth;
      draft.defaultDepth = node.defaultDepth;
      draft.draft = { base: node, session: this, own: (owner) => this.own(owner) } satisfies Draft;
      proxyFor(draft);
      this.drafts.set(node, draft);
    }
    return draft;
  }

  private own(draft: ConfigNode): void {
    if (this.owned.has(draft)) return;
    this.owned.add(draft);
    draft.values = immer.createDraft(draft.values);
  }

  finish(root: ConfigNode): ConfigNode {
    let changes = 0;
    for (const [base, draft] of this.drafts) {
      const values = this.owned.has(draft) ? (immer.finishDraft(draft.values) as Values) : draft.values;
      const changed = differs(values, base.values) || differsBesides(draft, base);
      this.written.set(base, { values, changed });
      if (changed) changes += 1;
    }
    if (changes === 0) return root;
    const onlyRoot = changes === 1 && this.written.get(root)?.changed === true;
    return this.resolve({ node: root, part: 'base' }, onlyRoot);
  }

  /** The final node of `start`: inner ones first, each once, without recursion. */
  private resolve(start: Task, onlyRoot: boolean): ConfigNode {
    const done = { base: new Map<ConfigNode, ConfigNode>(), added: new Map<ConfigNode, ConfigNode>() };
    const entered = { base: new Set<ConfigNode>(), added: new Set<ConfigNode>() };
    const open: { task: Task; references: Reference[] | undefined }[] = [
      { task: start, references: undefined },
    ];
    for (let frame = open.at(-1); frame !== undefined; frame = open.at(-1)) {
      const { node, part } = frame.task;
      if (frame.references !== undefined) {
        open.pop();
        const replaced = new Map<ConfigNode, ConfigNode>();
        for (const { held, task } of frame.references) {
          const final = done[task.part].get(task.node)!;
          if (final !== held) replaced.set(held, final);
        }
        done[part].set(node, this.finalNode(frame.task, replaced));
      } else if (done[part].has(node)) open.pop();
      else {
        entered[part].add(node);
        frame.references = this.references(frame.task, onlyRoot);
        for (const { task } of frame.references) {
          if (done[task.part].has(task.node)) continue;
          if (entered[task.part].has(task.node)) throw selfContaining(task.node);
          open.push({ task, references: undefined });
        }
      }
    }
    return done[start.part].get(start.node)!;
  }

  /** What each config in a node's values stands for: a part of the edited graph, or something newly put there. */
  private references({ node, part }: Task, onlyRoot: boolean): Reference[] {
    const values = (part === 'base' ? this.written.get(node)?.values : undefined) ?? node.values;
    const references: Reference[] = [];
    const old = part === 'base' ? new Set(nodesIn(node.values)) : new Set<ConfigNode>();
    for (const held of nodesIn(values)) {
      if (held.draft?.session === this)
        references.push({ held, task: { node: held.draft.base, part: 'base' } });
      else if (!old.has(held)) references.push({ held, task: { node: held, part: 'added' } });
      else if (!onlyRoot) references.push({ held, task: { node: held, part: 'base' } });
    }
    if (part === 'added' || onlyRoot) return references;
    const { defaults, containers } = this.drafts.get(node) ?? node;
    for (const handedOut of [defaults, containers]) {
      for (const [name, value] of handedOut ?? []) {
        if (name in values) continue;
        for (const held of nodesIn({ [name]: value })) {
          references.push({ held, task: { node: held, part: 'base' } });
        }
      }
    }
    return references;
  }

  private finalNode({ node, part }: Task, replaced: Map<ConfigNode, ConfigNode>): ConfigNode {
    const written = part === 'base' ? this.written.get(node) : undefined;
    if (replaced.size === 0 && written?.changed !== true) return node;
    const draft = written && this.drafts.get(node)!;
    const final = new ConfigNode((draft ?? node).info, node.kind);
    const swap = (leaf: unknown): unknown => {
      const held = nodeOf(leaf);
      return (held && replaced.get(held)?.proxy) ?? leaf;
    };
    const values = written?.values ?? node.values;
    for (const name in values) final.values[name] = mapContainers(values[name], swap);
    const source = draft ?? node;
    node.defaults ??= new Map();
    final.defaults = source.defaults;
    for (const [name, config] of source.defaults ?? []) {
      const swapped = replaced.get(nodeOf(config)!);
      if (swapped !== undefined && !(name in values)) final.values[name] = swapped.proxy;
    }
    final.containers = source.containers && (mapValues(source.containers, swap) as Map<string, unknown>);
    final.tags = source.tags;
    final.last = source.last;
    final.writes = source.writes;
    return proxied(final);
  }
}

/** A config that a node holds, and what is to stand in its place. */
interface Reference {
  readonly held: ConfigNode;
  readonly task: Task;
}

interface Task {
  readonly node: ConfigNode;
  /** `base`: part of the graph that is edited. `added`: put there by the recipe; drafts in it are resolved. */
  readonly part: 'base' | 'added';
}

function proxied(node: ConfigNode): ConfigNode {
  proxyFor(node);
  return node;
}

function mapValues(
  map: Map<string, unknown>,
  leaf = (value: unknown): unknown => value,
): Map<string, unknown> {
  return new Map([...map].map(([name, value]) => [name, mapContainers(value, leaf)]));
}

function nodesIn(values: Values): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  for (const name in values) collectNodes(values[name], nodes);
  return nodes;
}

function differs(values: Values, before: Values): boolean {
  if (values === before) return false;
  const names = Object.keys(values);
  if (names.length !== Object.keys(before).length) return true;
  return names.some((name) => {
    const value = values[name];
    if (Object.is(value, before[name])) return !(name in before);
    // A draft that was assigned to where its own original stands is no change.
    return nodeOf(value)?.draft?.base.proxy !== before[name] || before[name] === undefined;
  });
}

/** Whether class, tags or the set of defaults of a draft are others than those it began with. */
function differsBesides(draft: ConfigNode, base: ConfigNode): boolean {
  return draft.info !== base.info || draft.defaults !== base.defaults || !sameTags(draft.tags, base.tags);
}

function selfContaining(node: ConfigNode): ConfigError {
  return new ConfigError(
    `A config must not contain itself: an edit in derive() put a ${node.info.name} config into itself.`,
  );
}
