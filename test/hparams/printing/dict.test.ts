/** @file Configs as flat records. */
import { expect, test } from 'vitest';
import { asDictFlattened } from '../../../src/hparams/index.js';
import { chain, diamond, Inner, Leaf } from '../randomGraphs.js';

test('only what was set is in the record: neither defaults nor fields without a value', () => {
  const root = Inner.config({ value: 1, list: [Leaf.config({ label: 'x' })], table: { a: 1 } });
  root.value = 2;
  expect(asDictFlattened(root)).toEqual({ value: 2, 'list[0].label': 'x', table: { a: 1 } });
  expect(asDictFlattened(Inner.config())).toEqual({});
  expect(asDictFlattened(3)).toEqual({ '<root>': 3 });
});

test('classes are in the record where they are asked for', () => {
  const shared = Leaf.config({ value: 3 });
  expect(asDictFlattened(Inner.config({ left: shared, right: shared }), { classNames: true })).toEqual({
    '<root>': 'Inner',
    left: 'Leaf',
    'left.value': 3,
    right: 'same as left',
  });
});

test('a container in the record is a copy', () => {
  const root = Inner.config({ table: { a: 1 } });
  (asDictFlattened(root).table as Record<string, number>).a = 9;
  expect(root.table).toEqual({ a: 1 });
});

test('a chain of 10,000 and a diamond of 60 levels are flattened in linear space', () => {
  const flat = asDictFlattened(chain(10_000));
  expect(Object.values(flat).filter((value) => typeof value === 'number').length).toBe(10_000);
  expect(flat[Array(32).fill('list[0]').join('.')]).toBe('continues at @1');
  expect(flat['@1.value']).toBe(9_967);
  expect(Object.keys(asDictFlattened(diamond(60))).length).toBe(60);
});
