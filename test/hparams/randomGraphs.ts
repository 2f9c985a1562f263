/** @file Random graphs of configs with sharing, for the property tests of every tool; and long and deep ones. */
import fc from 'fast-check';
import { z } from 'zod';
import {
  addTag,
  type Config,
  Configurable,
  clearTags,
  defineTag,
  factory,
  instance,
  type PartialConfig,
  sub,
  tagged,
} from '../../src/hparams/index.js';

/** @public Generated code finds it in this module. */
export const numberTag = defineTag('graph.number', 'Numbers of a graph.');
/** @public Generated code finds it in this module. */
export const valueTag = defineTag('graph.value', 'Values of nodes.', { parent: numberTag });
/** @public Generated code finds it in this module. */
export const markTag = defineTag('graph.mark', 'Whatever a recipe marks.');

export abstract class Node extends Configurable.with({ value: tagged(z.int(), valueTag).default(0) }) {
  static override readonly isAbstract = true;
}
export class Inner extends Node.with({
  left: instance(Node, null).nullable().default(null),
  right: instance(Node, null).nullable().default(null),
  list: z.array(instance(Node, null)).default([]),
  table: z.record(z.string(), z.number()).default({}),
}) {}
export class Leaf extends Node.with({
  label: z.string().optional(),
  tpl: instance(Node, () => Inner.config()),
}) {}
export class Holder extends Node.with({
  byName: z.record(z.string(), sub(Node, null)).default({}),
  make: factory(Leaf).optional(),
  range: tagged(z.tuple([z.number(), z.number()]), numberTag).default([0, 1]),
  choice: z.union([z.literal('none'), z.int(), z.array(z.string())]).default('none'),
}) {}
export const nodeClasses = [Inner, Leaf, Holder] as const;
export type AnyNode = Config<Inner> | Config<Leaf> | Config<Holder>;

/** How to make one node of a graph: which earlier nodes it holds, and its values. */
export interface Recipe {
  readonly cls: 'inner' | 'leaf' | 'holder';
  readonly value: number | undefined;
  readonly label: string | undefined;
  readonly held: readonly number[];
  readonly table: Record<string, number>;
  readonly editsDefault: boolean;
  readonly choice: 'none' | number | string[] | undefined;
  /** What happens to the tags: a field is marked, the declared tag goes, or a value in a container is tagged. */
  readonly tags: 'none' | 'mark' | 'clear' | 'part';
}

const keys = fc.string().filter((key) => !['__proto__', 'constructor', 'prototype'].includes(key));

/** Lists of recipes: the last node made is the root. */
export const recipes: fc.Arbitrary<Recipe[]> = fc.array(
  fc.record({
    cls: fc.constantFrom('inner', 'inner', 'leaf', 'holder'),
    value: fc.option(fc.integer({ min: -9, max: 9 }), { nil: undefined }),
    label: fc.option(fc.string(), { nil: undefined }),
    held: fc.array(fc.nat({ max: 30 }), { maxLength: 5 }),
    table: fc.dictionary(keys, fc.double({ noNaN: true, noDefaultInfinity: true }), { maxKeys: 3 }),
    editsDefault: fc.boolean(),
    choice: fc.option(
      fc.oneof(fc.constant('none' as const), fc.integer(), fc.array(fc.string(), { maxLength: 3 })),
      { nil: undefined },
    ),
    tags: fc.constantFrom('none', 'none', 'mark', 'clear', 'part'),
  }),
  { minLength: 1, maxLength: 15 },
);

/** The graph that `all` describe; the same recipes make equal graphs. */
export function makeGraph(all: readonly Recipe[]): AnyNode {
  const made: AnyNode[] = [];
  const factories: PartialConfig<Leaf>[] = [];
  for (const recipe of all) {
    const held = recipe.held.flatMap((i) => (made.length === 0 ? [] : made[i % made.length]!));
    const node = { inner: Inner, leaf: Leaf, holder: Holder }[recipe.cls].config() as AnyNode;
    if (recipe.value !== undefined) node.value = recipe.value;
    if ('left' in node) {
      node.left = held[0] ?? null;
      node.right = held[1] ?? null;
      node.list = held.slice(2);
      node.table = recipe.table;
    } else if ('byName' in node) {
      node.byName = Object.fromEntries(held.map((config, i) => [`key ${i % 3}`, config]));
      if (recipe.editsDefault) factories.push(Leaf.partial({ value: recipe.held.length }));
      const make = factories[recipe.held.length % Math.max(1, factories.length)];
      if (make !== undefined) node.make = make;
      node.range[1] = recipe.held.length;
      if (recipe.choice !== undefined) node.choice = recipe.choice;
    } else {
      if (recipe.label !== undefined) node.label = recipe.label;
      if (recipe.editsDefault) node.tpl.value = 3;
      else if (held[0] !== undefined) node.tpl = held[0];
    }
    setTagsOf(node, recipe);
    made.push(node);
  }
  return made.at(-1)!;
}

function setTagsOf(node: AnyNode, { tags, value }: Recipe): void {
  if (tags === 'mark') addTag(node, 'value', markTag);
  if (tags === 'clear') clearTags(node, 'value');
  if (tags === 'part' && 'table' in node) node.table.tagged = markTag.new(value ?? 0);
  if (tags === 'part' && 'range' in node) node.range[0] = valueTag.new(value ?? 0);
}

/** Configs nested `length` deep. */
export function chain(length: number): Config<Inner> {
  let root = Inner.config({ value: 0 });
  for (let i = 1; i < length; i += 1) root = Inner.config({ value: i, list: [root] });
  return root;
}

/** `levels` configs with 2^(levels - 1) paths to the innermost. */
export function diamond(levels: number): Config<Inner> {
  let root = Inner.config({ value: 0 });
  for (let i = 1; i < levels; i += 1) root = Inner.config({ left: root, right: root });
  return root;
}
