/** @file Diffs as text, change by change, and what applying them to another base says. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  applyDiff,
  assign,
  buildDiff,
  type Config,
  Configurable,
  copy,
  deepCopy,
  defineTag,
  derive,
  factory,
  formatDiff,
  getTags,
  history,
  ignoringChanges,
  ignoringPaths,
  instance,
  isEqual,
  print,
  removeTag,
  skeletonFromDiff,
  tagged,
  updateCallable,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';
import { nameOnly } from '../tagFixtures.js';

const slow = defineTag('diffTest.slow', 'Learns slowly.');
const fast = defineTag('diffTest.fast', 'Learns fast.');
abstract class Part extends Configurable.with({ name: z.string().default('part') }) {
  static override readonly isAbstract = true;
}
class Mixer extends Part.with({ heads: tagged(z.int().default(8), slow), dims: z.int().optional() }) {}
class Wide extends Mixer.with({ width: z.int().default(2) }) {}
class Model extends Part.with({
  left: instance(Part, null).nullable().default(null),
  right: instance(Part, null).nullable().default(null),
  mixer: instance(Mixer),
  layers: z.array(instance(Part, null)).default([]),
  byName: z.record(z.string(), z.union([z.number(), instance(Part, null)])).default({}),
  sizes: z.array(z.number()).default([1, 2]),
}) {}

/** The text of the diff, after checks that it applies. */
function textOf(old: unknown, now: unknown): string {
  const diff = buildDiff(old, now);
  expect(isEqual(applyDiff(diff, old), now, { tags: true })).toBe(true);
  return formatDiff(diff);
}

function edited(change: (model: Config<Model>) => void, base = Model.config({ name: 'm' })): string {
  return textOf(base, derive(base, change));
}

test('equal configs have an empty diff, also where equal records changed places', () => {
  const one = Model.config({ byName: { a: 1 }, layers: [Mixer.config(), Mixer.config()] });
  expect(textOf(one, deepCopy(one))).toBe('');
  expect(textOf([{ a: 1 }, { a: 1 }], [{ a: 1 }, { a: 1 }])).toBe('');
  // An explicit default is equal to an unset one.
  expect(textOf(Mixer.config(), Mixer.config({ heads: 8 }))).toBe('');
  expect(applyDiff(buildDiff(one, deepCopy(one)), one)).toBe(one);
});

test('fields are set, changed and given their defaults back', () => {
  expect(edited((model) => assign(model, { name: 'n', sizes: [3] }))).toBe(
    "name : 'm' → 'n'\nsizes : [1, 2] (default) → [3]",
  );
  expect(edited((model) => delete (model as { name?: string }).name)).toBe("name : 'm' → 'part' (default)");
  expect(edited((model) => (model.mixer.heads = 4))).toBe('mixer.heads : 8 (default) → 4');
  expect(edited((model) => (model.mixer.dims = 4))).toBe('mixer.dims : <not set> → 4');
  expect(edited((model) => (model.mixer = Mixer.config({ heads: 9 })))).toBe('mixer.heads : 8 (default) → 9');
});

test('a class and a kind change, with the fields that have in common kept', () => {
  const base = Model.config({ left: Mixer.config({ name: 'a', heads: 2 }) });
  expect(edited((model) => (model.left = Wide.config({ name: 'a', heads: 2, width: 5 })), base)).toBe(
    'left : class Mixer → Wide\nleft.width : <no such field> → 5',
  );
  expect(textOf(Mixer.config({ heads: 2 }), Mixer.partial({ heads: 2 }))).toBe('<root> : config → partial');
  expect(textOf(Wide.config({ name: 'x', width: 3 }), Model.config({ name: 'x' }))).toBe(
    '<root> : class Wide → Model\nwidth : 3 → <no such field>',
  );
  expect(textOf(Wide.config({ width: 3 }), Model.config({ name: 'x' }))).toBe(
    "<root> : Wide of <root> → #1 Model\n#1.name : 'x'",
  );
  expect(textOf([1, 2], { a: 1 })).toBe('<root> : [1, 2] → {a: 1}');
  expect(textOf(1, 2)).toBe('<root> : 1 → 2');
});

test('a default that someone looked at may stand elsewhere, also where the class around it changes', () => {
  const base = Model.config({ name: 'm', left: Mixer.config({ name: 'a' }) });
  expect(base.mixer.heads).toBe(8);
  const tied = derive(base, (model) => (model.left = model.mixer));
  expect(applyDiff(buildDiff(base, tied), base).left).not.toBe(base.left);
  expect(textOf(base, tied)).toBe("mixer : <default> → Mixer of left\nleft.name : 'a' → 'part' (default)");
  expect(textOf(tied, Wide.config({ name: 'm' }))).toBe(
    '<root> : class Model → Wide\nleft : Mixer → <no such field>\nmixer : Mixer of left → <no such field>',
  );
});

test('items of lists come, go, move and change', () => {
  const layers = ['a', 'b', 'c', 'd'].map((name) => Mixer.config({ name, heads: 2, dims: 3 }));
  const base = Model.config({ layers, sizes: [1, 2, 3, 4] });
  expect(edited((model) => model.layers.splice(1, 0, Wide.config({ name: 'new' })), base)).toBe(
    "layers : before [1] → #1 Wide\n#1.name : 'new'",
  );
  expect(edited((model) => model.layers.splice(1, 1), base)).toBe('layers[1] : Mixer → <removed>');
  expect(edited((model) => model.layers.push(model.layers.shift()!), base)).toBe(
    'layers[0] : Mixer → moved at the end',
  );
  expect(textOf(base, deepCopy(derive(base, (model) => model.layers.unshift(model.layers.pop()!))))).toBe(
    'layers[3] : Mixer → moved before [0]',
  );
  expect(edited((model) => ((model.layers[2] as Config<Mixer>).heads = 7), base)).toBe(
    'layers[2].heads : 2 → 7',
  );
  expect(edited((model) => (model.sizes = [1, 5, 3, 4, 6]), base)).toBe(
    'sizes[1] : 2 → 5\nsizes : at the end → 6',
  );
  expect(edited((model) => (model.sizes = [4, 2, 3]), base)).toBe(
    'sizes[3] : 4 → moved before [1]\nsizes[0] : 1 → <removed>',
  );
});

test('keys of records come, go and change', () => {
  const base = Model.config({ byName: { a: 1, b: 2, c: 3 } });
  expect(edited((model) => (model.byName = { a: 1, c: 4, d: 5 }), base)).toBe(
    "byName['b'] : 2 → <removed>\nbyName['c'] : 3 → 4\nbyName['d'] : <not set> → 5",
  );
});

test('moved and shared configs are named by their paths, new shared ones once', () => {
  const base = Model.config({ left: Mixer.config({ heads: 2, dims: 3, name: 'a' }) });
  const move = (model: Config<Model>): void => {
    model.right = model.left;
    model.left = null;
  };
  expect(edited(move, base)).toBe('left : Mixer → null\nright : null (default) → Mixer of left');
  expect(textOf(base, deepCopy(derive(base, move)))).toBe(
    'left : Mixer → null\nright : null (default) → Mixer of left',
  );
  expect(edited((model) => (model.right = model.left), base)).toBe('right : null (default) → Mixer of left');
  const shared = edited((model) => (model.right = model.left), base);
  expect(shared).toBe('right : null (default) → Mixer of left');
  const tied = Mixer.config({ heads: 6 });
  expect(edited((model) => assign(model, { right: tied, byName: { t: tied } }), base)).toBe(
    'right : null (default) → #1 Mixer\nbyName : {} (default) → {t: #1 Mixer}\n#1.heads : 6',
  );
  const both = derive(base, (model) => (model.right = model.left));
  expect(edited((model) => (model.right = copy(both.left!)), both)).toBe(
    "right : Mixer of left → #1 Mixer\n#1.name : 'a'\n#1.heads : 2\n#1.dims : 3",
  );
});

test('tags are put on fields and taken from them, in the order of the fields and then the names', () => {
  const base = Mixer.config();
  const now = copy(base);
  addTag(now, 'heads', fast);
  removeTag(now, 'heads', slow);
  addTag(now, 'name', slow);
  addTag(now, 'name', fast);
  expect(textOf(base, now)).toBe(
    'name : + #diffTest.fast\nname : + #diffTest.slow\nheads : - #diffTest.slow\nheads : + #diffTest.fast',
  );
  expect(getTags(applyDiff(buildDiff(base, now), base), 'heads')).toEqual([fast]);
});

test('on another base, everything that does not fit is told at once, and what fits is kept', () => {
  const old = Model.config({ name: 'a', sizes: [1, 2], left: Mixer.config({ heads: 1 }) });
  const diff = buildDiff(
    old,
    derive(old, (model) => {
      model.name = 'b';
      model.sizes.splice(1, 1);
      (model.left as Config<Mixer>).heads = 2;
      model.byName = { k: 1 };
    }),
  );
  const other = Model.config({
    name: 'a',
    sizes: [1, 2, 3],
    left: Mixer.config({ heads: 1 }),
    right: Mixer.config(),
  });
  const made = applyDiff(diff, other);
  expect([made.name, [...made.sizes], made.right === other.right]).toEqual(['b', [1, 3], true]);
  const bad = Model.config({ name: 'x', sizes: [1], byName: { z: 1 } });
  expect(messageOf(() => applyDiff(diff, bad))).toBe(
    [
      'The diff does not fit: 4 problems:',
      '  left: null is where the diff has a config.',
      "  name: expected 'a', from which the diff was made, got 'x'.",
      '  byName: it is set already, to {z: 1}; the diff expects none, and sets {k: 1}.',
      '  sizes[1]: the list has no such item, its length is 1.',
    ].join('\n'),
  );
  expect(
    applyDiff(buildDiff(Mixer.config({ heads: 1 }), Mixer.config({ heads: 2 })), Mixer.config({ heads: 3 }), {
      checkOld: false,
    }).heads,
  ).toBe(2);
});

test('of a config of another class, the class alone is told', () => {
  const old = Model.config({ name: 'a', left: Wide.config({ heads: 1, width: 2 }) });
  const now = Model.config({ name: 'b', left: Mixer.config({ heads: 3 }) });
  const other = Model.config({ name: 'x', left: Mixer.config({ heads: 2 }) });
  const diff = buildDiff(old, now);
  expect(messageOf(() => applyDiff(diff, other))).toBe(
    [
      'The diff does not fit: 2 problems:',
      '  left: expected a Wide, from which the diff was made, got a Mixer.',
      "  name: expected 'a', from which the diff was made, got 'x'.",
    ].join('\n'),
  );
});

test('on a base whose holders are stricter, configs of a class or kind that they refuse are told', () => {
  class Strict extends Part.with({
    left: instance(Wide, null).nullable().default(null),
    many: z.array(instance(Wide)).default([]),
    make: factory(Mixer).optional(),
    sizes: z.array(z.number()).max(1).default([]),
  }) {}
  class Loose extends Part.with({ make: z.any() }) {}
  const refused = (old: unknown, now: unknown, base: unknown) =>
    nameOnly(() => applyDiff(buildDiff(old, now), base));
  const [wide, mixer] = [Model.config({ left: Wide.config() }), Model.config({ left: Mixer.config() })];
  const strict = Strict.config({ left: Wide.config() });
  expect(refused(wide, mixer, strict)).toBe(
    '<root>: left: expected a Wide config or null, got a Mixer config',
  );
  const wider = Model.config({ left: Wide.config({ width: 5 }) });
  expect((applyDiff<unknown>(buildDiff(wide, wider), strict) as Config<Strict>).left!.width).toBe(5);
  // Another place of the same config.
  const shared = Wide.config();
  const two = { a: Model.config({ left: shared }), b: Strict.config({ many: [shared] }) };
  expect(refused({ a: wide, b: 0 }, { a: mixer, b: 0 }, two)).toBe(
    "['b']: many[0]: expected a Wide config, got a Mixer config",
  );
  const made = Loose.config({ make: Mixer.partial({ heads: 3 }) });
  expect(
    refused(
      made,
      Loose.config({ make: Mixer.config({ heads: 3 }) }),
      Strict.config({ make: Mixer.partial({ heads: 3 }) }),
    ),
  ).toBe('<root>: make: expected a Mixer partial, got a Mixer config');
  // The class of the holder itself, whose fields take fewer values.
  class Tight extends Model.with({ sizes: z.array(z.number()).max(1).default([]) }) {}
  expect(refused(Model.config(), Tight.config(), Model.config({ sizes: [1, 2] }))).toBe(
    '<root>: sizes: expected an array of length at most 1 of numbers, got [1, 2]',
  );
});

test('tags of a field that the new class lacks go, and do not come back with its old class', () => {
  const old = Wide.config({ width: 3 });
  addTag(old, 'width', fast);
  addTag(old, 'heads', fast);
  const now = Mixer.config();
  addTag(now, 'heads', fast);
  const made = applyDiff<unknown>(buildDiff(old, now), old) as Config<Mixer>;
  expect(getTags(made, 'heads')).toEqual([fast, slow]);
  const back = updateCallable(made, Wide);
  expect([getTags(back, 'width'), getTags(old, 'width'), back.width]).toEqual([[], [fast], 2]);
});

test('writes are those of the caller, or of the text given', () => {
  const base = Mixer.config({ heads: 1 });
  const diff = buildDiff(base, Mixer.config({ heads: 2 }));
  expect(history(applyDiff(diff, base), 'heads').at(-1)?.where).toMatch(/diff\.test\.ts:\d+$/);
  expect(history(applyDiff(diff, base, { origin: '--diff=x' }), 'heads').at(-1)?.where).toBe('--diff=x');
});

test('changes are left out by what they are and by their paths, with the configs that they alone added', () => {
  const old = Model.config({ name: 'a' });
  const now = Model.config({ name: 'b', left: Mixer.config({ heads: 3 }), right: Wide.config({ width: 4 }) });
  const diff = buildDiff(old, now);
  expect(formatDiff(ignoringPaths(diff, ['left', 'byName']))).toBe(
    "name : 'a' → 'b'\nright : null (default) → #1 Wide\n#1.width : 4",
  );
  expect(formatDiff(ignoringChanges(diff, (change) => change.kind === 'set'))).toBe("name : 'a' → 'b'");
  const lists = Model.config({ sizes: [1, 2], byName: { k: 0, l: 0 } });
  const inside = buildDiff(lists, Model.config({ sizes: [3, 4], byName: { k: 1, l: 1 } }));
  expect(formatDiff(ignoringPaths(inside, [['sizes', 1], "byName['k']"]))).toBe(
    "byName['l'] : 0 → 1\nsizes[0] : 1 → 3",
  );
});

test('a skeleton has what the diff tells of the old structure', () => {
  const layers = ['a', 'b', 'c'].map((name) => Mixer.config({ name, heads: 2, dims: 3 }));
  const old = Model.config({ name: 'm', layers, left: layers[2]! });
  const diff = buildDiff(
    old,
    derive(old, (model) => {
      (model.layers[1] as Config<Mixer>).heads = 5;
      model.layers.splice(0, 1);
      model.left = null;
    }),
  );
  const skeleton = skeletonFromDiff(diff) as Config<Model>;
  const set = print(skeleton)
    .split('\n')
    .filter((line) => !line.includes('mixer') && /layers|left/.test(line));
  expect(set).toEqual([
    'left : Mixer',
    "left.name : 'part'",
    'left.heads : 8',
    'left.dims : <not set, optional>',
    'layers[0] : Mixer',
    "layers[0].name : 'a'",
    'layers[0].heads : 2',
    'layers[0].dims : 3',
    'layers[1] : Mixer',
    "layers[1].name : 'part'",
    'layers[1].heads : 2',
    'layers[1].dims : <not set, optional>',
    'layers[2] : a value',
  ]);
  expect(formatDiff(diff)).toBe(
    'left : Mixer → null\nlayers[0] : Mixer → <removed>\nlayers[1].heads : 2 → 5',
  );
});
