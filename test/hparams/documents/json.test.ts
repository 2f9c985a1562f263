/** @file Configs as JSON: whole documents, what JSON lacks, and what is wrong with a document. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Configurable, fromJSON, instance, isEqual, sub, toJSON } from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  left: instance(Leaf),
  right: instance(Leaf),
  list: z.array(z.union([instance(Leaf), z.string()])).default([]),
  table: z.record(z.string(), z.any()).default({}),
  when: z.date().optional(),
  make: z.any().optional(),
}) {}

test('toJSON lists configs, inner ones first, and refers to them by number', () => {
  const shared = Leaf.config({ size: 3 });
  const root = Root.config({ left: shared, right: shared, list: ['x', Leaf.config({ size: 1 })] });
  expect(toJSON(root)).toEqual({
    format: 'luthier-config',
    version: 1,
    root: { $config: 2 },
    configs: [
      { class: 'Leaf', values: { size: 3 } },
      { class: 'Leaf', values: { size: 1 } },
      { class: 'Root', values: { left: { $config: 0 }, right: { $config: 0 }, list: ['x', { $config: 1 }] } },
    ],
  });
  expect(JSON.parse(JSON.stringify(root))).toEqual(toJSON(root));
});

test('what JSON lacks survives the round trip', () => {
  const table = {
    nan: Number.NaN,
    low: -Infinity,
    zero: -0,
    big: 12n,
    none: undefined,
    $config: 3,
    nested: [{ $x: null }],
  };
  const root = Root.config({ table, when: new Date(5), left: Leaf.config({ size: 2 }) });
  const back = fromJSON(JSON.stringify(root)) as typeof root;
  expect(isEqual(back, root)).toBe(true);
  expect(back.table).toEqual(table);
  expect(Object.is((back.table as { zero: number }).zero, -0)).toBe(true);
  const partial = fromJSON(JSON.stringify(toJSON([Leaf.partial({ size: 1 })])));
  expect(isEqual(partial, [Leaf.partial({ size: 1 })])).toBe(true);
  expect(isEqual(partial, [Leaf.config({ size: 1 })])).toBe(false);
});

test('values without a JSON form are errors with their path', () => {
  const root = Root.config({ list: [], make: () => 1 });
  expect(messageOf(() => toJSON({ task: root }))).toBe(
    "['task'].make: function make has no JSON form. Describe it by a config, or by plain values.",
  );
});

test('documents are checked: names, values, references, keys, versions', () => {
  const load = (change: object): string =>
    messageOf(() => fromJSON({ ...toJSON(Leaf.config({ size: 1 })), ...change } as never));
  expect(messageOf(() => fromJSON('{'))).toContain('This is not JSON: ');
  expect(load({ format: 'x' })).toBe(
    'This is not a config document: it has no "format": "luthier-config" with a list of configs.',
  );
  expect(load({ version: 2 })).toBe('The config document has version 2; this program reads version 1.');
  expect(load({ configs: [{ class: 'Leef', values: {} }] })).toBe(
    "No class 'Leef' is known. Did you mean 'Leaf'? Import it, and pass it as fromJSON(document, { classes: [Leef] }).",
  );
  expect(load({ configs: [{ class: 'Leaf' }] })).toBe(
    'Entry 0 of the config document needs "class", "values" and perhaps "kind", got {class: \'Leaf\'}.',
  );
  expect(load({ configs: [{ class: 'Leaf', values: { size: 'x' } }] })).toContain(
    "Leaf.size: expected an integer, got 'x'",
  );
  expect(load({ configs: [{ class: 'Leaf', values: { sise: 1 } }] })).toContain(
    "Leaf has no hyperparameter 'sise'. Did you mean 'size'?",
  );
  expect(load({ root: { $config: 7 } })).toBe(
    'The config document refers to config 7, which does not stand before it.',
  );
  expect(load({ root: { $what: 7 } })).toBe("The config document has an unknown mark '$what'.");
  expect(load({ root: JSON.parse('{"__proto__": 1}') })).toBe(
    "'__proto__' is not allowed as a key in a config document.",
  );
});

test('classes of one name must be told apart', () => {
  const make = () => class Twin extends Configurable.with({ size: z.int().default(1) }) {};
  const first = make();
  const second = make();
  const document = toJSON(first.config({ size: 2 }));
  second.config();
  expect(messageOf(() => fromJSON(document))).toBe(
    "There are 2 classes called 'Twin': say which by fromJSON(document, { classes: [Twin] }).",
  );
  expect(isEqual(fromJSON(document, { classes: [second] }), second.config({ size: 2 }))).toBe(true);
});

test('a template that is a default is not written out unless it was edited', () => {
  class Owner extends Configurable.with({ tpl: sub(Leaf) }) {}
  const owner = Owner.config();
  expect(owner.tpl.scale).toBe(1);
  expect(toJSON(owner).configs).toEqual([{ class: 'Owner', values: {} }]);
  owner.tpl.size = 2;
  expect(toJSON(owner).configs.length).toBe(2);
  expect(isEqual(fromJSON(toJSON(owner)), owner)).toBe(true);
});
