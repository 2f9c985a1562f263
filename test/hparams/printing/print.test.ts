/** @file Configs as lines: paths, types, defaults, tags, sharing. */
import { styleText } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  Configurable,
  classOf,
  defineTag,
  instance,
  iterate,
  print,
  removeTag,
  sub,
  tagged,
  toJSON,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { chain, diamond, Inner, makeGraph, nodeClasses, recipes } from '../randomGraphs.js';
import { messageOf } from '../support.js';

const Width = defineTag('print.Width', 'Sizes of layers.');
const Seed = defineTag('print.Seed', 'What randomness begins with.');

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  left: instance(Leaf),
  right: instance(Leaf),
  list: z.array(z.union([instance(Leaf), z.string()])).default([]),
  table: z.record(z.string(), z.any()).default({}),
  when: z.date().optional(),
  make: z.any().optional(),
}) {}
class Owner extends Configurable.with({
  size: tagged(z.int(), Width),
  tpl: tagged(
    sub(Leaf, () => Leaf.config({ size: 7 })),
    Width,
  ),
}) {}

test('print gives a line for each field, defaults filled in, shared configs once', () => {
  const shared = Leaf.config({ size: 3 });
  const root = Root.config({
    right: shared,
    list: [shared, 'x'],
    table: { k: [1, 2], 'a b': Leaf.config({ size: 4 }) },
  });
  expect(print(root)).toBe(
    [
      '<root> : Root',
      'left : Leaf',
      'left.size : <not set>',
      'left.scale : 1',
      'right : Leaf',
      'right.size : 3',
      'right.scale : 1',
      'list[0] : same as right',
      "list[1] : 'x'",
      "table['k'] : [1, 2]",
      "table['a b'] : Leaf",
      "table['a b'].size : 4",
      "table['a b'].scale : 1",
      'when : <not set, optional>',
      'make : <not set, optional>',
    ].join('\n'),
  );
  expect(print({ task: Leaf.config({ size: 1 }) })).toBe(
    "['task'] : Leaf\n['task'].size : 1\n['task'].scale : 1",
  );
  expect(print([1, 2])).toBe('<root> : [1, 2]');
});

test('print does not store the defaults that it shows', () => {
  const root = Root.config();
  const before = JSON.stringify(toJSON(root));
  print(root);
  expect(JSON.stringify(toJSON(root))).toBe(before);
});

test('an unset field says so, a default says that it is one, a list without configs is one line', () => {
  const root = Root.config({ table: { k: [1, [2]] }, list: ['x', 'y'], right: Leaf.config({ size: 2 }) });
  expect(print(root, { defaults: 'mark' })).toBe(
    [
      '<root> : Root',
      'left : Leaf (default)',
      'left.size : <not set>',
      'left.scale : 1 (default)',
      'right : Leaf',
      'right.size : 2',
      'right.scale : 1 (default)',
      "list : ['x', 'y']",
      'table : {k: [1, [2]]}',
      'when : <not set, optional>',
      'make : <not set, optional>',
    ].join('\n'),
  );
});

test('defaults can be left out, and so can fields without a value', () => {
  const root = Root.config({ right: Leaf.config(), list: ['x'] });
  expect(print(root, { defaults: 'hide' })).toBe(
    "<root> : Root\nright : Leaf\nright.size : <not set>\nlist : ['x']",
  );
  expect(print(root, { defaults: 'hide', unset: false })).toBe("<root> : Root\nright : Leaf\nlist : ['x']");
  expect(print(Root.config(), { unset: false })).not.toContain('not set');
});

test('a default config is a default throughout, until it is edited', () => {
  const owner = Owner.config({ size: 1 });
  expect(print(owner, { defaults: 'hide' })).toBe('<root> : Owner\nsize : 1');
  owner.tpl.scale = 2;
  expect(print(owner, { defaults: 'hide' })).toBe(
    '<root> : Owner\nsize : 1\ntpl : Leaf\ntpl.size : 7\ntpl.scale : 2',
  );
});

test('defaults can be dimmed for a terminal', () => {
  const dim = (text: string) => styleText('dim', text, { validateStream: false });
  expect(print(Leaf.config({ size: 1 }), { defaults: 'dim' })).toBe(
    `<root> : Leaf\nsize : 1\n${dim('scale : 1')}`,
  );
});

test('with types, each line says what the field takes; all entries of a record have the type of its values', () => {
  const root = Root.config({
    list: [Leaf.config({ size: 1 }), 'x'],
    table: { a: 1 },
    left: Leaf.config({ size: 1 }),
  });
  class Table extends Configurable.with({ leaves: z.record(z.string(), instance(Leaf)) }) {}
  expect(print(root, { types: true, defaults: 'hide' })).toBe(
    [
      '<root> : Root',
      'left : a Leaf config = Leaf',
      'left.size : an integer = 1',
      'list[0] : a Leaf config or a string = Leaf',
      'list[0].size : an integer = 1',
      "list[1] : a Leaf config or a string = 'x'",
      'table : a record of anything = {a: 1}',
    ].join('\n'),
  );
  const table = Table.config({ leaves: { x: Leaf.config({ size: 1 }), 'y z': Leaf.config({ size: 2 }) } });
  expect(print(table, { types: true, defaults: 'hide' })).toBe(
    [
      '<root> : Table',
      "leaves['x'] : a Leaf config = Leaf",
      "leaves['x'].size : an integer = 1",
      "leaves['y z'] : a Leaf config = Leaf",
      "leaves['y z'].size : an integer = 2",
    ].join('\n'),
  );
});

test('tags that a config added or removed stand beside the name of the field, be it unset; those of the class do not', () => {
  const owner = Owner.config();
  addTag(owner, 'size', Seed);
  removeTag(owner, 'tpl', Width);
  expect(print(owner, { tags: true })).toBe(
    [
      '<root> : Owner',
      'size #print.Seed : <not set>',
      'tpl -#print.Width : Leaf',
      'tpl.size : 7',
      'tpl.scale : 1',
    ].join('\n'),
  );
});

test('tagged values and configs in lists are printed like any other, their tags beside the path', () => {
  const root = Root.config({
    table: { plain: Width.new(3), none: Width.new() },
    list: [Width.new(Leaf.config({ size: 1 }))],
  });
  expect(print(root, { tags: true, defaults: 'hide' })).toBe(
    [
      '<root> : Root',
      'list[0] #print.Width : Leaf',
      'list[0].size : 1',
      "table['plain'] #print.Width : 3",
      "table['none'] #print.Width : <not set>",
    ].join('\n'),
  );
});

test('fields are in the order of declaration, whatever the order in which they were set', () => {
  const leaf = Leaf.config();
  leaf.scale = 2;
  leaf.size = 1;
  expect(print(leaf)).toBe('<root> : Leaf\nsize : 1\nscale : 2');
});

test('maps and sets are shown with their parts, one by one where there are configs among them', () => {
  const leaf = Leaf.config({ size: 1 });
  const root = Root.config({
    table: { plain: new Map([['a', new Set([1])]]) },
    make: new Map<unknown, unknown>([
      ['k', leaf],
      [3, 'x'],
    ]),
  });
  expect(print(root, { defaults: 'hide' })).toBe(
    [
      '<root> : Root',
      "table : {plain: Map {'a' => Set [1]}}",
      "make['k'] : Leaf",
      "make['k'].size : 1",
      "make[3] : 'x'",
    ].join('\n'),
  );
});

test('a value never breaks its line, nor does it command the terminal', () => {
  const text = print(Root.config({ make: 'a\nb\u001b[31mc\u2028', table: { 'k\r': Leaf.config() } }));
  expect(text).toContain("make : 'a\\nb\\u001b[31mc\\u2028'");
  expect(text).toContain("table['k\\r'] : Leaf");
});

test('a config that contains itself is printed', () => {
  const root = Inner.config();
  root.left = root;
  expect(print(root, { defaults: 'hide' })).toBe('<root> : Inner\nleft : same as <root>');
});

test('a container that contains itself is an error', () => {
  const list: unknown[] = [Leaf.config()];
  list.push(list);
  expect(messageOf(() => print(list))).toBe(
    'A container must not contain itself: [1] is the same array as the root.',
  );
});

test('long paths begin anew from a label, so that a chain of 10,000 is printed in linear space', () => {
  const text = print(chain(10_000), { defaults: 'hide' });
  const lines = text.split('\n');
  expect(lines[62]).toBe(`${'list[0].'.repeat(30)}list[0] : Inner`);
  expect(lines[64]).toBe(`@1 : ${'list[0].'.repeat(31)}list[0]`);
  expect(lines[65]).toBe('@1 : Inner');
  expect(lines.at(-1)).toMatch(/^@312(\.list\[0\])+\.value : 0$/);
  expect(text.length).toBeLessThan(10_000 * 500);
});

test('a diamond of 60 levels has a line for each config and each sharing', () => {
  const lines = print(diamond(60), { defaults: 'hide' }).split('\n');
  expect(lines.filter((line) => line.endsWith(' : Inner')).length).toBe(60);
  expect(lines.filter((line) => line.includes(' : same as ')).length).toBe(59);
});

/** The configs in `root`, without the carriers of tags: those are no lines of their own. */
function configsIn(root: unknown) {
  return iterate(root).filter(({ config }) => nodeClasses.some((cls) => cls === classOf(config)));
}

test('random graphs: each config is opened once', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const root = makeGraph(all);
      const opened = print(root, { defaults: 'hide' })
        .split('\n')
        .filter((line) => / : (Inner|Leaf|Holder)( \(partial\))?$/.test(line));
      expect(opened.length).toBe(configsIn(root).length);
    }),
    { numRuns: runs(1000) },
  );
});
