/** @file Random shared graphs, long chains and deep diamonds: every tool agrees on them, and none overflows. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  build,
  type Config,
  copy,
  deepCopy,
  derive,
  fromJSON,
  getPath,
  isEqual,
  iterate,
  print,
  toJSON,
} from '../../src/hparams/index.js';
import { runs } from '../faults/campaign.js';
import {
  type AnyNode,
  chain,
  diamond,
  Holder,
  Inner,
  Leaf,
  makeGraph,
  type Node,
  recipes,
} from './randomGraphs.js';

const tries = { numRuns: runs(300) };

test('copies and JSON give equal graphs with the same sharing', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const graph = makeGraph(all);
      for (const twin of [
        makeGraph(all),
        deepCopy(graph),
        copy(graph),
        fromJSON(JSON.stringify(graph)) as AnyNode,
      ]) {
        expect(isEqual(graph, twin)).toBe(true);
        expect(print(twin)).toBe(print(graph));
      }
      const inDeepCopy = new Set<unknown>(iterate(deepCopy(graph)).map((visit) => visit.config));
      expect(iterate(graph).some((visit) => inDeepCopy.has(visit.config))).toBe(false);
    }),
    tries,
  );
});

test('graphs are equal exactly if they print alike', () => {
  fc.assert(
    fc.property(recipes, recipes, fc.boolean(), (some, others, alike) => {
      const left = makeGraph(some);
      const right = makeGraph(alike ? some : others);
      expect(isEqual(left, right)).toBe(print(left) === print(right));
      expect(isEqual(right, left)).toBe(isEqual(left, right));
    }),
    tries,
  );
});

test('derive does what the same edit does to a deep copy, and leaves the original alone', () => {
  fc.assert(
    fc.property(recipes, fc.nat(), fc.integer(), (all, which, value) => {
      const graph = makeGraph(all);
      const before = print(graph);
      const edit = (root: AnyNode): void => {
        const places = iterate(graph);
        const { path } = places[which % places.length]!;
        const node = getPath(root, path) as AnyNode;
        node.value = value;
        if ('list' in node && node.list.length > 0) {
          node.right = node.list.pop() as Config<Inner>;
          node.table.added = value;
        }
      };
      const copied = deepCopy(graph);
      edit(copied);
      const derived = derive(graph, edit);
      expect(print(graph)).toBe(before);
      expect(print(derived)).toBe(print(copied));
      expect(isEqual(derived, copied)).toBe(true);
    }),
    tries,
  );
});

test('one config object is one built object', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const graph = makeGraph(all);
      const objects = new Set<Node>();
      const open: Node[] = [build(graph as Config<Node>)];
      for (let node = open.pop(); node !== undefined; node = open.pop()) {
        if (objects.has(node)) continue;
        objects.add(node);
        if (node instanceof Leaf) open.push(node.hp.tpl);
        else if (node instanceof Inner)
          open.push(...[node.hp.left, node.hp.right, ...node.hp.list].filter((x) => x !== null));
      }
      // A holder's templates and factories are configs that build() leaves alone.
      if ([...objects].some((node) => node instanceof Holder)) return;
      expect(objects.size).toBe(iterate(graph, { defaults: true }).length);
    }),
    tries,
  );
});

test.each([
  ['a chain of 10,000', () => chain(10_000), 10_000],
  ['a diamond of 60 levels, with 2^59 paths', () => diamond(60), 60],
])('%s passes through every tool', (_name, make, size) => {
  const graph = make();
  expect(isEqual(graph, make())).toBe(true);
  expect(build(graph)).toBeInstanceOf(Inner);
  expect(iterate(graph).length).toBe(size);
  const document = toJSON(graph);
  expect(document.configs.length).toBe(size);
  expect(isEqual(fromJSON(document), graph)).toBe(true);
  expect(isEqual(deepCopy(graph), graph)).toBe(true);
  const lines = print(graph).split('\n');
  expect(lines.filter((line) => line.endsWith(' : Inner')).length).toBe(size);
  const edited = derive(graph, (draft) => {
    let bottom: AnyNode = draft;
    for (let next: unknown = bottom; next !== undefined; ) {
      bottom = next as Config<Inner>;
      next = bottom.list[0] ?? bottom.left ?? undefined;
    }
    bottom.value = -77;
  });
  expect(isEqual(edited, graph)).toBe(false);
  expect(
    print(edited)
      .split('\n')
      .filter((line) => line.endsWith('value : -77')).length,
  ).toBe(1);
});
