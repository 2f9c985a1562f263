/** @file The history of every field as text. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  Configurable,
  clearTags,
  copy,
  defineTag,
  instance,
  printHistory,
  setPath,
  suspendTracking,
  unset,
  withOrigin,
} from '../../../src/hparams/index.js';
import { chain, diamond } from '../randomGraphs.js';

const Rate = defineTag('history.Rate', 'How fast.');

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  leaf: instance(Leaf, null).nullable().default(null),
  list: z.array(z.union([instance(Leaf), z.int()])).default([]),
}) {}

/** The text of `action`'s writes, each attributed to its own step. */
function written<C>(config: C, ...steps: ((config: C) => void)[]): C {
  for (const [i, step] of steps.entries()) withOrigin(`step ${i + 1}`, () => step(config));
  return config;
}

test('each field has its value and place, and what it was before, newest first', () => {
  const leaf = withOrigin('step 0', () => Leaf.config({ size: 1 }));
  written(
    leaf,
    () => (leaf.size = 2),
    () => (leaf.size = 3),
    () => (leaf.scale = 3),
  );
  expect(printHistory(leaf)).toBe(
    [
      '<root> : Leaf',
      'size : 3 @ step 2',
      '  - previously: 2 @ step 1',
      '  - previously: 1 @ step 0',
      'scale : 3 @ step 3',
    ].join('\n'),
  );
});

test('the place is the line of the caller', () => {
  expect(printHistory(Leaf.config({ size: 1 }), { defaults: 'hide' })).toMatch(
    /^<root> : Leaf\nsize : 1 @ test\/hparams\/printing\/history\.test\.ts:\d+$/,
  );
});

test('unset and deleted fields are listed, required ones too', () => {
  const leaf = withOrigin('step 0', () => Leaf.config({ size: 1 }));
  expect(printHistory(Leaf.config())).toBe('<root> : Leaf\nsize : <not set>\nscale : 1 (default)');
  written(
    leaf,
    () => unset(leaf, 'size'),
    () => (leaf.scale = 2),
    () => unset(leaf, 'scale'),
  );
  expect(printHistory(leaf)).toBe(
    [
      '<root> : Leaf',
      'size : <not set>, deleted @ step 1',
      '  - previously: 1 @ step 0',
      'scale : 1 (default), deleted @ step 3',
      '  - previously: 2 @ step 2',
    ].join('\n'),
  );
  withOrigin('step 4', () => (leaf.size = 5));
  expect(printHistory(leaf).split('\n').slice(1, 4)).toEqual([
    'size : 5 @ step 4',
    '  - previously: deleted @ step 1',
    '  - previously: 1 @ step 0',
  ]);
});

test('configs in lists are listed under their paths, edits in place count', () => {
  const root = withOrigin('step 0', () => Root.config({ list: [Leaf.config({ size: 1 })] }));
  written(
    root,
    () => root.list.push(7),
    () => setPath(root, 'list[0].size', 2),
  );
  expect(printHistory(root, { defaults: 'hide' })).toBe(
    [
      '<root> : Root',
      'list : [a Leaf config, 7] @ step 1',
      '  - previously: [a Leaf config] @ step 0',
      'list[0] : Leaf',
      'list[0].size : 2 @ step 2',
      '  - previously: 1 @ step 0',
    ].join('\n'),
  );
});

test('a shared config has its history once, its second place has that of the field', () => {
  const leaf = withOrigin('step 0', () => Leaf.config({ size: 1 }));
  const root = Root.config();
  written(
    root,
    () => (root.leaf = leaf),
    () => (root.list = [leaf]),
  );
  expect(printHistory(root)).toBe(
    [
      '<root> : Root',
      'leaf : Leaf @ step 1',
      'leaf.size : 1 @ step 0',
      'leaf.scale : 1 (default)',
      'list : [a Leaf config] @ step 2',
      'list[0] : same as leaf',
    ].join('\n'),
  );
});

test('changes of tags are part of the history', () => {
  const leaf = withOrigin('step 0', () => Leaf.config({ size: 1 }));
  written(
    leaf,
    () => addTag(leaf, 'size', Rate),
    () => clearTags(leaf, 'size'),
  );
  expect(printHistory(leaf, { defaults: 'hide' })).toBe(
    [
      '<root> : Leaf',
      'size : 1 @ step 0',
      '  - tags: none @ step 2',
      '  - tags: #history.Rate @ step 1',
    ].join('\n'),
  );
});

test('a value that was written while tracking was suspended has no place, and hides none', () => {
  const leaf = withOrigin('step 0', () => Leaf.config({ size: 1 }));
  suspendTracking(() => (leaf.size = 2));
  expect(printHistory(leaf, { defaults: 'hide' })).toBe(
    '<root> : Leaf\nsize : 2\n  - previously: 1 @ step 0',
  );
});

test('a copy goes on from the history of its original', () => {
  const twin = copy(withOrigin('step 0', () => Leaf.config({ size: 1 })));
  written(twin, () => (twin.size = 2));
  expect(printHistory(twin, { defaults: 'hide' })).toBe(
    '<root> : Leaf\nsize : 2 @ step 1\n  - previously: 1 @ step 0',
  );
});

test('a chain of 10,000 and a diamond of 60 levels have histories of linear length', () => {
  const long = withOrigin('x', () => printHistory(chain(10_000), { defaults: 'hide' }));
  expect(long.match(/\.value : \d+ @/g)?.length).toBe(9_999);
  expect(printHistory(diamond(60), { defaults: 'hide' }).split('\n').length).toBe(1 + 2 * 59 + 1);
});
