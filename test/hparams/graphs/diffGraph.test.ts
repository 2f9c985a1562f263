/** @file Graphs of diffs. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  buildDiff,
  Configurable,
  deepCopy,
  defineTag,
  diffToDot,
  diffToSvg,
  instance,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { chain, diamond, makeGraph, recipes } from '../randomGraphs.js';
import { lastWarning, readSvg } from './drawn.js';

const Rate = defineTag('diffGraphs.Rate', 'How fast.');

class Leaf extends Configurable.with({ size: z.int().optional(), scale: z.number().default(1) }) {}
class Other extends Configurable.with({ size: z.int().optional() }) {}
class Root extends Configurable.with({
  left: z
    .union([instance(Leaf), instance(Other)])
    .nullable()
    .default(null),
  right: instance(Leaf, null).nullable().default(null),
  list: z.array(z.int()).default([]),
  name: z.string().default('x'),
}) {}

const old = Root.config({ left: Leaf.config({ size: 1 }), right: Leaf.config({ size: 5 }), list: [1, 2] });

function change(edit: (config: typeof old) => void) {
  const now = deepCopy(old);
  edit(now);
  return buildDiff(old, now);
}

test('changed values have an arrow between them, what did not change is left out', async () => {
  const diff = change((now) => {
    now.right!.size = 6;
    now.name = 'y';
  });
  expect(readSvg(await diffToSvg(diff))).toEqual({
    nodes: {
      '<root>': ['Root', 'right', 'Leaf', 'name', "'y'"],
      right: ['Leaf', 'size', '5', '→', '6'],
    },
    edges: ['n0->n1'],
    dashed: [],
  });
});

test('old values are red, new ones green', () => {
  const cells = (dot: string) =>
    [...dot.matchAll(/<TD[^>]*BGCOLOR="(#\w+)">(?:<\w>)?([^<]+)/g)].map((m) => `${m[2]} ${m[1]}`);
  const modified = cells(diffToDot(change((now) => (now.right!.size = 6))));
  expect(modified).toContain('5 #fce8e6');
  expect(modified).toContain('6 #e6f4ea');
  const lists = diffToDot(change((now) => now.list.push(3)));
  expect(lists).toMatch(/BGCOLOR="#e6f4ea">list\[\+\]<\/TD>.*BGCOLOR="#e6f4ea">3</);
  expect(diffToDot(change((now) => now.list.splice(0, 1)))).toMatch(
    /BGCOLOR="#fce8e6">list\[0\]<\/TD>.*BGCOLOR="#fce8e6">1</,
  );
  expect(diffToDot(change((now) => (now.right = null)))).toMatch(/BGCOLOR="#f28b82"><B>Leaf/);
});

test('a config that came is drawn with its values, and so is one that went', async () => {
  const came = buildDiff(Root.config(), Root.config({ right: Leaf.config({ size: 7 }) }));
  const { nodes, edges } = readSvg(await diffToSvg(came));
  expect(nodes.right).toEqual(['Leaf', 'size', '7']);
  expect(edges).toEqual(['n0->n1']);
  const gone = readSvg(await diffToSvg(change((now) => (now.right = null))));
  expect(gone.nodes.right).toEqual(['Leaf', 'size', '5']);
});

test('a new class stands beside the old one', async () => {
  const diff = change((now) => (now.left = Other.config({ size: 1 })));
  expect(Object.values(readSvg(await diffToSvg(diff)).nodes).flat()).toEqual(
    expect.arrayContaining(['Leaf', '→', 'Other']),
  );
});

test('tags that came stand in the row of the field', async () => {
  const diff = change((now) => addTag(now, 'name', Rate));
  expect(readSvg(await diffToSvg(diff)).nodes).toEqual({ '<root>': ['Root', 'name', '#diffGraphs.Rate'] });
});

test('with the old structure, what did not change is drawn, too', async () => {
  const diff = change((now) => (now.right!.size = 6));
  expect(readSvg(await diffToSvg(diff, { old, defaults: 'hide' })).nodes).toEqual({
    '<root>': ['Root', 'left', 'Leaf', 'right', 'Leaf', 'list', '[1, 2]'],
    left: ['Leaf', 'size', '1'],
    right: ['Leaf', 'size', '5', '→', '6'],
  });
});

test('equal configs, and values that are no configs', async () => {
  expect(readSvg(await diffToSvg(buildDiff(old, deepCopy(old)))).nodes).toEqual({ '<root>': ['no changes'] });
  expect(readSvg(await diffToSvg(buildDiff({ a: 1 }, { a: 2 }))).nodes).toEqual({
    '<root>': ['Object', "['a']", '1', '→', '2'],
  });
});

test('a chain of 10,000 and a diamond of 60 levels', () => {
  const long = chain(10_000);
  const dot = diffToDot(buildDiff(long, chain(9_999)), { old: long });
  expect(dot.length).toBeLessThan(10_000 * 5_000);
  const wide = diamond(60);
  expect(diffToDot(buildDiff(wide, wide))).toContain('no changes');
});

test('random diffs: Graphviz has nothing to say', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, recipes, fc.boolean(), async (before, after, whole) => {
      const was = makeGraph(before);
      const diff = buildDiff(was, makeGraph(after));
      const dot = diffToDot(diff, whole ? { old: was } : {});
      expect(dot).not.toContain('undefined:');
      expect(dot).not.toContain('-> undefined');
      readSvg(await diffToSvg(diff, whole ? { old: was } : {}));
      expect(await lastWarning()).toBe('');
    }),
    { numRuns: runs(60, 10) },
  );
});
