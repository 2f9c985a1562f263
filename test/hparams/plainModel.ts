/** @file A plain model of configs: what edits do to them, without drafts, proxies and lazy defaults. */
import { z } from 'zod';
import { type Config, Configurable, defineTag, sub, tagged } from '../../src/hparams/index.js';

export const Value = defineTag('model.Value', 'Values of the nodes of a model.');

export class Tip extends Configurable.with({
  value: tagged(z.int(), Value).default(0),
  nums: z.array(z.int()).default([2, 1]),
  opt: sub(Configurable, null).nullable().default(null),
}) {}
export class Box extends Tip.with({
  tpl: sub(Tip),
  list: z.array(sub(Configurable)).default([]),
  table: z.record(z.string(), sub(Configurable)).default({}),
  defs: z.array(sub(Tip)).default([Tip.config({ value: 5 }), Tip.config()]),
}) {}
export type Real = Config<Box>;

/** A config as the model has it: a plain object. */
export interface Model {
  isBox: boolean;
  value: number;
  nums: number[];
  opt: Model | null;
  tpl: Model | null;
  list: Model[];
  table: Record<string, Model>;
  defs: Model[];
  /** Fields that were written, or whose default was put elsewhere too. */
  explicit: Set<string>;
  /** How often it was written to; a copy begins with the count of its original. */
  writes: number;
  /** Whether anything was written since it was made as a default; undefined for what is none. */
  edited: boolean | undefined;
}

export function model(isBox: boolean, edited?: boolean): Model {
  const plain = {
    isBox,
    value: 0,
    nums: [2, 1],
    opt: null,
    list: [],
    table: {},
    explicit: new Set<string>(),
    writes: 0,
    edited,
  };
  const made: Model = { ...plain, tpl: null, defs: [] };
  if (isBox) Object.assign(made, { tpl: model(false, false), defs: defaultDefs() });
  return made;
}

function defaultDefs(): Model[] {
  const [first, second] = [model(false, false), model(false, false)];
  first.value = 5;
  first.explicit.add('value');
  return [first, second];
}

export function childrenOf(node: Model): Model[] {
  const own = [node.opt, node.tpl].filter((child) => child !== null);
  return [...own, ...node.list, ...Object.values(node.table), ...node.defs];
}

export function realChildren(node: Real): Real[] {
  const own = [node.opt as Real | null, isBox(node) ? (node.tpl as Real) : null].filter(
    (child) => child !== null,
  );
  if (!isBox(node)) return own;
  return [
    ...own,
    ...(node.list as Real[]),
    ...(Object.values(node.table) as Real[]),
    ...(node.defs as Real[]),
  ];
}

export function isBox(node: Real): boolean {
  return 'tpl' in node;
}

/** The nodes below a root, each once, in one order for configs and models. */
export function nodesOf<N>(root: N, children: (node: N) => N[]): N[] {
  const seen = new Set([root]);
  for (const node of seen) for (const child of children(node)) seen.add(child);
  return [...seen];
}

/** All there is to read below a root, with the sharing. */
export function shown(root: Model | Real, isModel: boolean): string {
  const children = (isModel ? childrenOf : realChildren) as (node: unknown) => unknown[];
  const all = nodesOf<unknown>(root, children);
  const id = new Map(all.map((node, i) => [node, i]));
  const ids = (list: readonly unknown[]) => list.map((node) => id.get(node)).join();
  return all
    .map((each, i) => {
      const node = each as Model;
      const box = isModel ? node.isBox : isBox(each as Real);
      const common = `${i}: ${node.value} [${node.nums.join()}] opt ${node.opt === null ? '-' : id.get(node.opt)}`;
      if (!box) return common;
      const keys = Object.keys(node.table).join();
      return `${common} tpl ${id.get(node.tpl)} list ${ids(node.list)} table ${keys} ${ids(Object.values(node.table))} defs ${ids(node.defs)}`;
    })
    .join('\n');
}

/** What `derive` gives, in the model: a copy whose unchanged nodes are those that they were copied from. */
export function deriveModel(root: Model, recipe: (draft: Model) => void): Model {
  const drafts = copiesOf(root);
  recipe(drafts.get(root)!);
  const originals = new Map([...drafts].map(([node, draft]) => [draft, node]));
  const done = new Map<Model, Model>();
  const finish = (node: Model): Model => {
    const known = done.get(node);
    if (known !== undefined) return known;
    const original = originals.get(node);
    // Edited defaults are values of what was derived.
    if (original !== undefined) node.explicit = explicitFields(node);
    swapChildren(node, finish);
    const final = original !== undefined && isSame(node, original) ? original : node;
    if (final === node) shareExplicit(node);
    done.set(node, final);
    return final;
  };
  return finish(drafts.get(root)!);
}

/** A default that an explicit field holds beside its owner is a value. */
function shareExplicit(node: Model): void {
  for (const field of ['opt', 'tpl', 'list', 'table', 'defs'] as const) {
    if (!node.explicit.has(field)) continue;
    for (const held of childrenOf({ ...model(false), [field]: node[field] }))
      if (held.edited === false) held.edited = true;
  }
}

function swapChildren(node: Model, swap: (node: Model) => Model): void {
  node.opt = node.opt && swap(node.opt);
  node.tpl = node.tpl && swap(node.tpl);
  node.list = node.list.map(swap);
  node.defs = node.defs.map(swap);
  node.table = Object.fromEntries(Object.entries(node.table).map(([key, part]) => [key, swap(part)]));
}

function isSame(a: Model, b: Model): boolean {
  const explicit = explicitFields(a);
  const held = (node: Model) =>
    childrenOf({
      ...node,
      tpl: explicit.has('tpl') ? node.tpl : null,
      defs: explicit.has('defs') ? node.defs : [],
    });
  return (
    a.writes === b.writes &&
    sameList([...explicit].sort(), [...explicitFields(b)].sort()) &&
    sameList(held(a), held(b))
  );
}

/** Fields that were written, and those whose default was edited. */
function explicitFields(node: Model): Set<string> {
  const fields = new Set(node.explicit);
  if (node.tpl !== null && !isPristine(node.tpl)) fields.add('tpl');
  if (!node.defs.every(isPristine)) fields.add('defs');
  return fields;
}

function sameList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i]);
}

export function wrote(node: Model, field: string): void {
  node.explicit.add(field);
  node.writes++;
  if (node.edited === false) node.edited = true;
}

function isPristine(node: Model): boolean {
  return node.edited === false && childrenOf(node).every(isPristine);
}

/** A copy that shares the configs held; defaults that nobody edited are new. */
export function copyModel(node: Model): Model {
  const made: Model = {
    ...node,
    nums: [...node.nums],
    list: [...node.list],
    defs: [...node.defs],
    table: { ...node.table },
  };
  made.explicit = new Set(node.explicit);
  made.edited = undefined;
  if (node.tpl !== null && !node.explicit.has('tpl')) {
    if (isPristine(node.tpl)) made.tpl = model(false, false);
    else made.explicit.add('tpl');
  }
  if (node.isBox && !node.explicit.has('defs')) {
    if (node.defs.every(isPristine)) made.defs = defaultDefs();
    else made.explicit.add('defs');
  }
  return made;
}

export function deepCopyModel(root: Model): Model {
  return copiesOf(root).get(root)!;
}

/** The copies of all nodes below a root, which hold one another. */
function copiesOf(root: Model): Map<Model, Model> {
  const copies = new Map(nodesOf(root, childrenOf).map((node) => [node, copyModel(node)]));
  for (const made of copies.values()) swapChildren(made, (node) => copies.get(node) ?? node);
  return copies;
}
