/** @file Copy-on-write edits: what changes, what stays the same object, what is refused. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  Configurable,
  deepCopy,
  derive,
  history,
  instance,
  isEqual,
  isSet,
  print,
  sub,
} from '../../src/hparams/index.js';
import { messageOf } from './support.js';

class Leaf extends Configurable.with({ size: z.int().default(1), dims: z.array(z.int()).default([1]) }) {}
class Branch extends Configurable.with({
  a: sub(Leaf),
  b: sub(Leaf),
  list: z.array(sub(Leaf)).default([]),
  table: z.record(z.string(), z.array(z.int())).default({}),
  name: z.string().default('branch'),
}) {}
class Tree extends Configurable.with({
  left: sub(Branch),
  right: sub(Branch),
  any: sub(Configurable).optional(),
}) {}

test('the original is untouched and what was not written is the same object', () => {
  const tree = Tree.config({
    left: Branch.config({ a: Leaf.config(), table: { x: [1] } }),
    right: Branch.config(),
  });
  const before = print(tree);
  const derived = derive(tree, (draft) => {
    draft.left.a.size = 5;
    draft.left.table.x!.push(2);
  });
  expect(print(tree)).toBe(before);
  expect([derived.left.a.size, derived.left.table]).toEqual([5, { x: [1, 2] }]);
  expect(derived.right).toBe(tree.right);
  expect(derived.left.b).toBe(tree.left.b);
  expect(derived.left).not.toBe(tree.left);
});

test('no change gives the config itself', () => {
  const tree = Tree.config({ left: Branch.config({ list: [Leaf.config()] }) });
  expect(derive(tree, () => {})).toBe(tree);
  expect(derive(tree, (draft) => void (draft.left.list[0]!.size + draft.right.a.size))).toBe(tree);
  expect(derive(tree, (draft) => void Object.assign(draft, { left: draft.left }))).toBe(tree);
  expect(derive(Leaf.config({ size: 2 }), (draft) => void (draft.size = 2)).size).toBe(2);
});

test('a shared config is edited everywhere and stays shared', () => {
  const shared = Leaf.config();
  const tree = Tree.config({
    left: Branch.config({ a: shared, list: [shared] }),
    right: Branch.config({ b: shared }),
  });
  const derived = derive(tree, (draft) => void (draft.left.a.size = 7));
  expect(derived.left.a.size).toBe(7);
  expect(derived.left.list[0]).toBe(derived.left.a);
  expect(derived.right.b).toBe(derived.left.a);
  expect(shared.size).toBe(1);
});

test('a template edited by default is edited in the copy alone', () => {
  const branch = Branch.config();
  const derived = derive(branch, (draft) => void (draft.a.size = 3));
  expect([branch.a.size, derived.a.size, isSet(branch, 'a'), isSet(derived, 'a')]).toEqual([
    1,
    3,
    false,
    true,
  ]);
  expect(isEqual(branch, Branch.config())).toBe(true);
  const reset = derive(derived, (draft) => void delete (draft as { a?: unknown }).a);
  expect([derived.a.size, reset.a.size]).toEqual([3, 1]);
});

test('drafts may be moved and used twice, and put into new configs', () => {
  const branch = Branch.config({ a: Leaf.config({ size: 2 }) });
  const derived = derive(branch, (draft) => {
    draft.b = draft.a;
    draft.list.push(draft.a, Leaf.config({ size: 9 }));
    draft.a.size = 4;
  });
  expect([derived.a.size, branch.a.size]).toEqual([4, 2]);
  expect(derived.b).toBe(derived.a);
  expect(derived.list.map((leaf) => leaf.size)).toEqual([4, 9]);
  expect(derived.list[0]).toBe(derived.a);
  const tree = derive(Tree.config({ left: branch }), (draft) => {
    draft.right = Branch.config({ a: draft.left.a });
    draft.left.a.size = 6;
  });
  expect(tree.right.a).toBe(tree.left.a);
  expect(tree.left.a.size).toBe(6);
});

test('a config must not be put into itself, be it as the original or as the draft', () => {
  const tree = Tree.config();
  const refused =
    'A config must not contain itself: an edit in derive() put a Tree config into itself. A deepCopy() of the original may stand in it.';
  expect(messageOf(() => derive(tree, (draft) => void (draft.any = draft)))).toBe(refused);
  expect(messageOf(() => derive(tree, (draft) => void (draft.any = tree)))).toBe(refused);
  expect(isSet(tree, 'any')).toBe(false);
  const derived = derive(tree, (draft) => {
    draft.any = deepCopy(tree);
    draft.left.name = 'new';
  });
  expect([(derived.any as typeof tree).left.name, tree.left.name, derived.left.name]).toEqual([
    'branch',
    'branch',
    'new',
  ]);
});

test('drafts are checked like configs, and die with their derive', () => {
  const branch = Branch.config();
  expect(messageOf(() => derive(branch, (draft) => void (draft.a.size = 0.5)))).toMatch(
    /^Leaf\.size: expected an integer, got 0\.5 \(at test\/hparams\/derive\.test\.ts:\d+\)$/,
  );
  let escaped = branch;
  derive(branch, (draft) => void (escaped = draft));
  const late = 'This draft of Branch was used after its derive() had ended.';
  expect(messageOf(() => escaped.name)).toBe(late);
  expect(messageOf(() => (escaped.name = 'x'))).toBe(late);
  expect(messageOf(() => Tree.config({ left: escaped }))).toContain(late);
  expect(messageOf(() => derive(branch, async (draft) => void (draft.name = 'x')))).toBe(
    'The function given to derive() must not be async: the edit ends when it returns.',
  );
  expect(messageOf(() => derive({} as never, () => {}))).toBe('derive() takes a config, got {}.');
  expect(branch.name).toBe('branch');
});

test('derive within derive', () => {
  const tree = Tree.config();
  const derived = derive(tree, (draft) => {
    draft.left.name = 'outer';
    draft.right = derive(draft.left, (inner) => void (inner.a.size = 3));
    draft.left.a.size = 4;
  });
  expect([derived.left.name, derived.right.name]).toEqual(['outer', 'outer']);
  expect([derived.left.a.size, derived.right.a.size]).toEqual([4, 3]);
});

test('arrays of the copy are its own', () => {
  const leaf = Leaf.config({ dims: [1, 2] });
  const derived = derive(leaf, (draft) => void (draft.size = 2));
  derived.dims.push(3);
  const sorted = derive(leaf, (draft) => void draft.dims.reverse());
  expect([leaf.dims, derived.dims, sorted.dims]).toEqual([
    [1, 2],
    [1, 2, 3],
    [2, 1],
  ]);
  expect(derive(Leaf.config(), (draft) => void draft.dims.push(5)).dims).toEqual([1, 5]);
});

test('writes are recorded in the copy, with the line of the recipe', () => {
  const leaf = Leaf.config({ size: 2 });
  const derived = derive(leaf, (draft) => void (draft.size = 3));
  expect(history(leaf).map((entry) => entry.value)).toEqual([2]);
  expect(history(derived).map((entry) => entry.value)).toEqual([2, 3]);
  expect(history(derived)[1]!.where).toMatch(/^test\/hparams\/derive\.test\.ts:\d+$/);
});

test('what was derived builds', () => {
  class Holder extends Configurable.with({ x: instance(Leaf), y: instance(Leaf) }) {}
  const shared = Leaf.config();
  const holder = build(derive(Holder.config({ x: shared, y: shared }), (draft) => void (draft.y.size = 8)));
  expect(holder.hp.x).toBe(holder.hp.y);
  expect(holder.hp.x.hp.size).toBe(8);
});
