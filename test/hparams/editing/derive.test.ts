/** @file Copy-on-write edits: what changes, what stays the same object, what is refused. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  Configurable,
  deepCopy,
  defineTag,
  derive,
  history,
  instance,
  isEqual,
  isSet,
  print,
  sub,
} from '../../../src/hparams/index.js';
import { ConfigNode } from '../../../src/hparams/nodes/configNode.js';
import { messageOf } from '../support.js';

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
    left: Branch.config({ a: Leaf.config(), b: Leaf.config(), table: { x: [1] } }),
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

test('without a write the result is the config itself; a write of the same value is one', () => {
  const tree = Tree.config({ left: Branch.config({ list: [Leaf.config()] }) });
  expect(derive(tree, () => {})).toBe(tree);
  expect(derive(tree, (draft) => void (draft.left.list[0]!.size + draft.right.a.size))).toBe(tree);
  expect(tree.left.list[0]!.dims).toEqual([1]);
  const again = derive(tree, (draft) => void Object.assign(draft, { left: draft.left }));
  expect([isEqual(again, tree), again.left === tree.left, history(again, 'left').length]).toEqual([
    true,
    true,
    2,
  ]);
  expect(history(tree, 'left')).toHaveLength(1);
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
  const refused = 'A config must not contain itself: any is the same Tree config as the root.';
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

test('drafts are checked like configs, and what was edited is the result', () => {
  const branch = Branch.config();
  expect(messageOf(() => derive(branch, (draft) => void (draft.a.size = 0.5)))).toMatch(
    /^Leaf\.size: expected an integer, got 0\.5 \(at test\/hparams\/editing\/derive\.test\.ts:\d+\)$/,
  );
  let escaped = branch;
  expect(derive(branch, (draft) => void (escaped = draft).list.push(Leaf.config()))).toBe(escaped);
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
  expect(history(derived)[1]!.where).toMatch(/^test\/hparams\/editing\/derive\.test\.ts:\d+$/);
});

test('what was derived builds', () => {
  class Holder extends Configurable.with({ x: instance(Leaf), y: instance(Leaf) }) {}
  const shared = Leaf.config();
  const holder = build(derive(Holder.config({ x: shared, y: shared }), (draft) => void (draft.y.size = 8)));
  expect(holder.hp.x).toBe(holder.hp.y);
  expect(holder.hp.x.hp.size).toBe(8);
});

test('a config that is held unread by one that was not read is edited there, too', () => {
  const shared = Leaf.config();
  const middle = Branch.config({ b: shared, list: [Leaf.config()] });
  const tree = Tree.config({
    left: Branch.config({ a: shared }),
    right: middle,
    any: Tree.config({ left: middle, right: Branch.config() }),
  });
  const derived = derive(tree, (draft) => void (draft.left.a.size = 7));
  expect(derived.right.b.size).toBe(7);
  expect(derived.right.b).toBe(derived.left.a);
  expect((derived.any as typeof tree).left).toBe(derived.right);
  expect(derived.right.list[0]).toBe(middle.list[0]);
  expect((derived.any as typeof tree).right).toBe((tree.any as typeof tree).right);
  expect([shared.size, tree.right.b]).toEqual([1, shared]);
});

test('no config is copied whose parts were not read', () => {
  const wide = defineTag('derive.wide', 'The wide ones.');
  let chain = Tree.config({ left: Branch.config({ a: Leaf.config() }) });
  for (let i = 0; i < 50; i++) chain = Tree.config({ left: Branch.config(), any: chain });
  const made = (recipe: (draft: typeof chain) => void): number => {
    const before = ConfigNode.count;
    derive(chain, recipe);
    return ConfigNode.count - before;
  };
  expect(made(() => {})).toBe(1);
  expect(made((draft) => void (draft.any as typeof chain).any)).toBe(1 + 2 + 2);
  expect(made((draft) => void addTag(draft, 'left', wide))).toBe(1 + 2);
});

test('an inner recipe does not write to a draft of the outer one that it is the first to read', () => {
  const tree = Tree.config({ left: Branch.config(), right: Branch.config({ a: Leaf.config() }) });
  const edit = () =>
    derive(tree, (draft) => {
      derive(draft.left, () => void (draft.right.a.size = 2));
    });
  expect(messageOf(edit)).toMatch(/^Leaf\.size was written from within derive\(\)/);
});

test('what was made before the recipe is not written to, be it the original or in the draft', () => {
  const leaf = Leaf.config({ size: 2 });
  const branch = Branch.config({ b: Leaf.config({ size: 3 }) });
  const refused = (field: string) =>
    new RegExp(
      `^Leaf\\.${field} was written from within derive\\(\\), which edits its draft alone\\. Write to the draft, or put ` +
        'a deepCopy\\(\\) there first\\. \\(at test/hparams/editing/derive\\.test\\.ts:\\d+\\)$',
    );
  const put = derive(branch, (draft) => {
    draft.a = leaf;
    expect(messageOf(() => (draft.a.size = 5))).toMatch(refused('size'));
    expect(messageOf(() => draft.a.dims.push(7))).toMatch(refused('dims'));
    expect(messageOf(() => (branch.b.size = 5))).toMatch(refused('size'));
    draft.list.push(deepCopy(leaf));
    draft.list[0]!.size = 4;
  });
  expect([put.a, put.list[0]!.size, leaf.size, leaf.dims]).toEqual([leaf, 4, 2, [1]]);
  expect(put.a).toBe(leaf);
  leaf.size = 6;
  expect(put.a.size).toBe(6);
});

test('a part of the original that was put into the draft is what its copy has become', () => {
  const branch = Branch.config({ b: Leaf.config({ size: 3 }) });
  const wrapped = Branch.config({ a: branch.b });
  const tree = derive(Tree.config({ left: branch, right: wrapped }), (draft) => {
    draft.left.a = branch.b;
    draft.any = Branch.config({ list: [branch.b] });
    draft.left.b.size = 6;
  });
  expect([tree.left.a.size, branch.b.size, wrapped.a.size]).toEqual([6, 3, 3]);
  for (const leaf of [tree.left.b, tree.right.a, (tree.any as typeof branch).list[0]])
    expect(leaf).toBe(tree.left.a);
});

test('a config that the recipe made stands in the result, with all edits of it, and edits no original', () => {
  const old = Leaf.config();
  const tree = Tree.config({ right: Branch.config({ b: old }) });
  let made = Branch.config();
  const derived = derive(tree, (draft) => {
    made = Branch.config({ a: draft.right.b, b: draft.left.a });
    const loose = made.list;
    draft.any = made;
    made.name = 'direct';
    (draft.any as typeof made).table.x = [1];
    made.a.size = 3;
    loose.push(Leaf.config());
    loose[0]!.size = 4;
    draft.left.a.size = 8;
    expect([draft.right.b.size, made.b.size]).toEqual([3, 8]);
  });
  expect(derived.any).toBe(made);
  expect(made.a).toBe(derived.right.b);
  expect(made.b).toBe(derived.left.a);
  expect([made.name, made.table, made.a.size, made.b.size, made.list.map((leaf) => leaf.size)]).toEqual([
    'direct',
    { x: [1] },
    3,
    8,
    [4],
  ]);
  expect([old.size, tree.left.a.size]).toEqual([1, 1]);
  made.list.push(Leaf.config());
  expect(derived.any).toHaveProperty('list.length', 2);
});

test('defaults of a draft are those of its original, also where they are put elsewhere or brought back', () => {
  class Listed extends Configurable.with({
    list: z.array(sub(Leaf)).default(() => [Leaf.config()]),
    tpl: sub(Branch),
    any: sub(Configurable).optional(),
    next: sub(Configurable).optional(),
  }) {}
  const config = Listed.config({ next: Listed.config() });
  const moved = derive(config, (draft) => {
    draft.any = (draft.next as typeof config).list[0];
    draft.next = draft.tpl.a;
  });
  expect(moved.next).toBe(moved.tpl.a);
  const again = deepCopy(moved);
  expect(again.next).toBe(again.tpl.a);
  expect([isSet(config, 'tpl'), isSet(moved, 'tpl'), print(config)]).toEqual([
    false,
    true,
    print(Listed.config({ next: Listed.config() })),
  ]);
  const kept = derive(config, (draft) => (draft.any = (draft.next as typeof config).list[0]));
  expect((kept.next as typeof config).list[0]).toBe(kept.any);
  expect(deepCopy(kept)).toSatisfy((all: typeof config) => (all.next as typeof config).list[0] === all.any);

  config.list[0]!.size = 5;
  const reset = derive(config, (draft) => void delete (draft as { list?: unknown }).list);
  expect([config.list[0]!.size, reset.list[0]!.size]).toEqual([5, 1]);
});

test('a recipe within a recipe sees the drafts of the outer one, and its result may be edited further', () => {
  const old = Leaf.config();
  const tree = Tree.config({ left: Branch.config({ a: old, list: [old] }) });
  const derived = derive(tree, (draft) => {
    draft.left.a.size = 2;
    draft.right = derive(draft.left, (inner) => {
      inner.name = 'inner';
      expect(inner.list[0]!.size).toBe(2);
      inner.b = Leaf.config({ size: 3 });
      inner.b.size = 4;
    });
    draft.left.a.size = 5;
    draft.right.b.dims.push(6);
    const unchanged = derive(draft.left, () => {});
    expect(unchanged).toBe(draft.left);
    draft.any = derive(old, (inner) => void (inner.size = 7));
  });
  expect([derived.right.name, derived.right.a.size, derived.right.b.size, derived.right.b.dims]).toEqual([
    'inner',
    5,
    4,
    [1, 6],
  ]);
  expect(derived.right.a).toBe(derived.left.list[0]);
  expect([old.size, derived.any]).toEqual([1, Leaf.config({ size: 7 })]);
});

test('an error in a recipe leaves everything as it was', () => {
  const other = Leaf.config();
  const tree = Tree.config({ left: Branch.config({ list: [Leaf.config()], table: { x: [2, 1] } }) });
  const before = print(tree);
  const fail = () =>
    derive(tree, (draft) => {
      draft.left.list.push(other);
      draft.left.list[0]!.size = 4;
      draft.left.table.x!.push(2);
      draft.right.a.size = 3;
      throw new RangeError('stop');
    });
  expect(fail).toThrow(new RangeError('stop'));
  expect([print(tree), other.size, isEqual(tree, deepCopy(tree))]).toEqual([before, 1, true]);
  const splice = () =>
    derive(tree, (draft) => {
      expect(messageOf(() => draft.left.list.splice(0, 1, other, 3 as never))).toContain('Branch.list[1]');
      expect(draft.left.list).toHaveLength(1);
      expect(() =>
        draft.left.table.x!.sort(() => {
          throw new RangeError('compare');
        }),
      ).toThrow(new RangeError('compare'));
    });
  expect(splice()).toBe(tree);
  expect(other.size).toBe(1);
});

test('what a history holds of a recipe is what its result holds', () => {
  const branch = Branch.config({ list: [Leaf.config()] });
  const derived = derive(branch, (draft) => {
    draft.a = Leaf.config({ size: 2 });
    draft.b = draft.list[0]!;
    draft.list.push(draft.a);
    draft.a.size = 3;
    draft.list[0]!.size = 4;
  });
  expect(history(derived, 'a').at(-1)!.value).toBe(derived.a);
  expect(history(derived, 'b').at(-1)!.value).toBe(derived.b);
  expect(history(derived, 'list').at(-1)!.value).toEqual([derived.b, derived.a]);
  expect(history(branch).length).toBe(1);
});
