/** @file Differences of configs, for the messages of tests. */
import { expect, test } from 'vitest';
import { addTag, deepCopy, defineTag, describeDifferences } from '../../../src/hparams/index.js';
import { Inner, Leaf } from '../randomGraphs.js';

const fast = defineTag('differences.fast', 'Learns fast.');

test('differences for tests: defaults, sharing, tags, classes', () => {
  const leaf = Leaf.config({ value: 0 });
  const one = Inner.config({ left: leaf, right: leaf, table: { a: 1, b: 3 } });
  const other = Inner.config({ left: Leaf.config(), right: Leaf.config(), table: { a: 1 }, value: 0 });
  addTag(other, 'table', fast);
  expect(describeDifferences(one, other)).toEqual([
    'left.value: 0 ≠ 0 (default)',
    'right: same as left ≠ Leaf',
    'table: {a: 1, b: 3} ≠ {a: 1} #differences.fast',
    'value: 0 (default) ≠ 0',
  ]);
  expect(describeDifferences(one, deepCopy(one))).toEqual([]);
  expect(describeDifferences([leaf], [Inner.config()])).toEqual(['[0]: Leaf ≠ Inner']);
});

test('what only one of the two has is missing in the other', () => {
  const [some, more] = [[Leaf.config()], [Leaf.config(), Leaf.partial()]];
  expect(describeDifferences(some, more)).toEqual(['[1]: <missing> ≠ Leaf (partial)']);
  expect(describeDifferences(more, some)).toEqual(['[1]: Leaf (partial) ≠ <missing>']);
  expect(describeDifferences(Leaf.config({ value: 1 }), 3)).toEqual(['<root>: Leaf ≠ 3']);
});
