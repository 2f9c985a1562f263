/** @file Graphs of configs, as DOT and as SVG laid out by the real Graphviz. */
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  Configurable,
  classOf,
  defineTag,
  factory,
  instance,
  iterate,
  toDot,
  toSvg,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { chain, diamond, Inner, makeGraph, nodeClasses, recipes } from '../randomGraphs.js';
import { lastWarning, readSvg } from './drawn.js';

const loaded = vi.hoisted(() => ({ times: 0 }));
vi.mock('@hpcc-js/wasm-graphviz', (original) => {
  loaded.times += 1;
  return original();
});

const Rate = defineTag('graphs.Rate', 'How fast.');

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  left: instance(Leaf),
  list: z.array(z.union([instance(Leaf), z.int()])).default([]),
  make: factory(Leaf).optional(),
  any: z.any().optional(),
}) {}

test('Graphviz is not loaded before the first SVG', () => {
  expect(loaded.times).toBe(0);
});

test('the DOT text of a config', () => {
  const top = 'SIDES="T" BORDER="1" COLOR="#e8eaed"';
  expect(toDot(Leaf.config({ size: 1 }))).toBe(
    `digraph configs {
  graph [rankdir=LR, bgcolor=transparent, nodesep=0.25, ranksep=0.6]
  node [shape=plain, fontname="Arial", fontsize=10, fontcolor="#202124"]
  edge [color="#5f6368", arrowsize=0.6, penwidth=0.8]
  n0 [tooltip="&lt;root&gt;", label=<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4" STYLE="solid" COLOR="#5f6368" BGCOLOR="white">` +
      '<TR><TD PORT="top" COLSPAN="2" BGCOLOR="#dcbff7"><B>Leaf</B></TD></TR>' +
      `<TR><TD ALIGN="LEFT" ${top}>size</TD><TD ALIGN="LEFT" ${top} PORT="r0">1</TD></TR>` +
      `<TR><TD ALIGN="LEFT" ${top}><FONT COLOR="#9aa0a6">scale</FONT></TD>` +
      `<TD ALIGN="LEFT" ${top} PORT="r1"><FONT COLOR="#9aa0a6">1</FONT></TD></TR></TABLE>>]
}
`,
  );
});

test('a box for each config, a shared one once, arrows from the fields; partials are dashed', async () => {
  const shared = Leaf.config({ size: 1 });
  const root = Root.config({ left: shared, list: [shared, 2], make: Leaf.partial() });
  expect(readSvg(await toSvg(root))).toEqual({
    nodes: {
      '<root>': [
        'Root',
        'left',
        'Leaf',
        'list[0]',
        'Leaf',
        'list[1]',
        '2',
        'make',
        'Leaf (partial)',
        'any',
        '<not set, optional>',
      ],
      left: ['Leaf', 'size', '1', 'scale', '1'],
      make: ['Leaf', 'partial', 'size', '<not set>', 'scale', '1'],
    },
    edges: ['n0->n1', 'n0->n1', 'n0->n2'],
    dashed: ['make'],
  });
  expect(loaded.times).toBe(1);
});

test('defaults are grey, and their configs not drawn; they can be left out, or drawn like others', async () => {
  const root = Root.config({ any: 1 });
  const nodesOf = async (defaults: 'dim' | 'hide' | 'show') => readSvg(await toSvg(root, { defaults })).nodes;
  expect(await nodesOf('dim')).toEqual({
    '<root>': ['Root', 'left', 'Leaf', 'list', '[]', 'make', '<not set, optional>', 'any', '1'],
  });
  expect(toDot(root).match(/<FONT COLOR="#9aa0a6">/g)?.length).toBe(6);
  expect(await nodesOf('hide')).toEqual({ '<root>': ['Root', 'any', '1'] });
  expect(await nodesOf('show')).toEqual({
    '<root>': ['Root', 'left', 'Leaf', 'list', '[]', 'make', '<not set, optional>', 'any', '1'],
    left: ['Leaf', 'size', '<not set>', 'scale', '1'],
  });
});

test('depth counts the shortest way; what is cut off is named', async () => {
  const deep = Inner.config({ value: 3 });
  const root = Inner.config({ left: Inner.config({ left: deep }), right: deep });
  const { nodes } = readSvg(await toSvg(root, { defaults: 'hide', maxDepth: 1 }));
  expect(nodes).toEqual({
    '<root>': ['Inner', 'left', 'Inner', 'right', 'Inner'],
    left: ['Inner', 'left', 'Inner'],
    right: ['Inner', 'value', '3'],
  });
  expect(readSvg(await toSvg(root, { defaults: 'hide', maxDepth: 0 })).nodes).toEqual({
    '<root>': ['Inner', 'left', 'Inner', '…', 'right', 'Inner', '…'],
  });
});

test('long values are cut, between letters', async () => {
  const { nodes } = readSvg(
    await toSvg(Root.config({ any: '👍👍👍👍👍👍' }), { defaults: 'hide', maxStringLength: 6 }),
  );
  expect(nodes['<root>']).toEqual(['Root', 'any', "'👍👍👍👍…"]);
});

test('whatever a value or key holds, the graph shows it and stays well-formed', async () => {
  const any = '<b>&amp;"\\N\\n\n\r\t\u0000\u0007\u001b\ud800漢\uffff';
  const root = Root.config({ any: { [any]: Leaf.config(), '': Leaf.config({ size: 1 }), plain: any } });
  const { nodes } = readSvg(await toSvg(root, { defaults: 'hide', maxStringLength: 99 }));
  const shown = '<b>&amp;"\\\\N\\\\n\\n\\r\\t\\u0000\\u0007\\u001b\ufffd漢\ufffd';
  const [, key, , empty, , plain, text] = nodes['<root>']!;
  expect([key, empty, plain]).toEqual([`any['${shown}']`, "any['']", "any['plain']"]);
  expect(text).toBe(`'${shown}'`);
  expect(Object.keys(nodes)).toEqual(['<root>', `any['${shown}']`, "any['']"]);
  expect(await lastWarning()).toBe('');
  expect(readSvg(await toSvg('', { render: () => '' })).nodes).toEqual({
    '<root>': ['string', 'value', "''"],
  });
});

test('tags stand beside the fields', async () => {
  const leaf = Leaf.config({ size: 1 });
  addTag(leaf, 'size', Rate);
  expect(readSvg(await toSvg(leaf, { defaults: 'hide' })).nodes).toEqual({
    '<root>': ['Leaf', 'size', '#graphs.Rate', '1'],
  });
});

test('one may say how values and configs are shown', async () => {
  const root = Root.config({
    left: Leaf.config({ size: 1 }),
    any: [
      [1, 0],
      [0, 1],
    ],
  });
  const svg = await toSvg(root, {
    defaults: 'hide',
    render(value, usual) {
      if (value === root.left) return [...usual, { text: 'small', colour: 'red', bold: true }];
      return Array.isArray(value)
        ? value.map((row) => ({ text: row.join(''), background: '#eeeeee' }))
        : undefined;
    },
  });
  expect(readSvg(svg).nodes).toEqual({ '<root>': ['Root', 'left', 'Leaf', 'small', 'any', '10', '01'] });
  expect(svg).toContain('fill="red">small');
  // What is not set has no value that one could show.
  const shown = await toSvg(Leaf.config({}), { render: (value) => String(value) });
  expect(readSvg(shown).nodes).toEqual({ '<root>': ['Leaf', 'size', '<not set>', 'scale', '1'] });
});

test('texts are as wide as Graphviz takes them to be, in whatever font', async () => {
  const texts = ['Wide', 'thin "il"', 'a  b', '<&>', 'C:\\dir', '&#160;', '\u00a0é→日', "'{1}'", '~^`|@'];
  const cells = texts.flatMap((text) => [
    { text, background: '#eeeeee' },
    { text, background: '#eeeeee', bold: true, italic: true },
  ]);
  const svg = await toSvg(Leaf.config({ size: 1 }), { defaults: 'hide', render: () => cells });
  // Graphviz puts each text in the middle of its cell, by the width that it takes the text to have.
  const drawn = svg.matchAll(
    /fill="#eee[^>]* points="([\d.]+),[^ ]* [^ ]* ([\d.]+),[^>]*>\n<text [^>]* x="([\d.]+)"[^>]* textLength="([\d.]+)"/g,
  );
  const errors = [...drawn].map(([, left, right, x, width]) => {
    const padding = Number(x) - Number(left);
    return Number(right) - Number(left) - 2 * padding - Number(width);
  });
  expect(errors).toHaveLength(cells.length);
  for (const error of errors) expect(Math.abs(error)).toBeLessThan(0.05);
});

test('the root may be a list, a record or any value', async () => {
  const leaf = Leaf.config({ size: 1 });
  expect(readSvg(await toSvg({ a: leaf, b: [leaf, 3] }, { defaults: 'hide' })).nodes).toEqual({
    '<root>': ['Object', "['a']", 'Leaf', "['b'][0]", 'Leaf', "['b'][1]", '3'],
    "['a']": ['Leaf', 'size', '1'],
  });
  expect(readSvg(await toSvg([1, 2])).nodes).toEqual({ '<root>': ['Array', 'value', '[1, 2]'] });
});

test('classes have their colours in every graph, and different ones', () => {
  const colours = (dot: string) =>
    [...dot.matchAll(/BGCOLOR="(#\w+)"><B>(\w+)/g)].map((m) => `${m[2]} ${m[1]}`);
  const first = colours(toDot(Root.config({ left: Leaf.config() })));
  expect(first.length).toBe(2);
  expect(new Set(first.map((text) => text.slice(-7))).size).toBe(2);
  expect(colours(toDot([Leaf.config()]))).toContain(first[1]);
});

test('the direction can be chosen', () => {
  const dot = toDot(Root.config({ left: Leaf.config() }), { direction: 'TB' });
  expect(dot).toContain('rankdir=TB');
  expect(dot).toContain('n0:r0 -> n1:top:n');
});

test('a chain of 10,000, a diamond of 60 levels and a cycle have graphs of linear size', () => {
  expect(toDot(chain(10_000)).length).toBeLessThan(10_000 * 2_000);
  const dot = toDot(diamond(60));
  expect(dot.match(/label=/g)?.length).toBe(60);
  expect(dot.match(/ -> /g)?.length).toBe(118);
  const root = Inner.config();
  root.left = root;
  expect(toDot(root)).toContain('n0:r1:e -> n0:top:w');
});

/** The configs in `root`, without the carriers of tags: those are no nodes of their own. */
function configsIn(root: unknown) {
  return iterate(root).filter(({ config }) => nodeClasses.some((cls) => cls === classOf(config)));
}

test('random graphs: Graphviz has nothing to say, each config is one node, each edge has its port', async () => {
  await fc.assert(
    fc.asyncProperty(recipes, async (all) => {
      const root = makeGraph(all);
      const dot = toDot(root);
      const ports = new Map(
        [...dot.matchAll(/^ {2}(n\d+) \[(.*)\]$/gm)].map((match) => [match[1], match[2]]),
      );
      const edges = [...dot.matchAll(/^ {2}(n\d+):(r\d+):e -> (n\d+):top:w$/gm)];
      for (const [, from, port, to] of edges) {
        expect(ports.get(from)).toContain(`PORT="${port}"`);
        expect(ports.has(to)).toBe(true);
      }
      const drawn = readSvg(await toSvg(root));
      expect(await lastWarning()).toBe('');
      expect(Object.keys(drawn.nodes).length).toBe(configsIn(root).length);
      expect(drawn.edges.length).toBe(edges.length);
    }),
    { numRuns: runs(200) },
  );
});
