/** @file Edits of whole configs: kinds, copies with values, other classes, defaults, trimming, style. */
import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  assign,
  build,
  type Config,
  Configurable,
  cast,
  checkBaselineStyle,
  classOf,
  configurable,
  copyWith,
  deepCopy,
  deepCopyWith,
  defineTag,
  derive,
  type Factory,
  getTags,
  history,
  instance,
  isEqual,
  isSet,
  iterate,
  materializeDefaults,
  type PartialConfig,
  print,
  setPath,
  sub,
  trimmed,
  updateCallable,
  withDefaultsTrimmed,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { type AnyNode, chain, diamond, Holder, Inner, Leaf, makeGraph, recipes } from '../randomGraphs.js';
import { messageOf } from '../support.js';

const Size = defineTag('edit.Size', 'How large something is.');

class Part extends Configurable.with({ size: z.int().default(1), label: z.string().optional() }) {}
class BigPart extends Part.with({
  size: z.int().min(10).default(10),
  extra: z.array(z.int()).default([1]),
}) {}
class Other extends Configurable.with({ size: z.string().default('s'), labels: z.int().default(0) }) {}
class Pair extends Configurable.with({
  left: instance(Part),
  right: instance(Part, null).optional(),
  rates: z.array(z.number()).default([0.5]),
  tpl: sub(Part, () => Part.config({ size: 3 })),
}) {}

test('cast gives another kind with the same values, tags and history, which then go their own ways', () => {
  const left = Part.config({ size: 2 });
  const config = Pair.config({ left });
  addTag(config, 'rates', Size);
  const partial = cast('partial', config);
  expectTypeOf(partial).toEqualTypeOf<PartialConfig<Pair>>();
  expect(partial.left).toBe(left);
  partial.rates = [1];
  expect(config.rates).toEqual([0.5]);
  expect(getTags(partial, 'rates')).toEqual([Size]);
  expect(history(partial).map(({ field, kind }) => `${field} ${kind}`)).toEqual([
    'left set',
    'rates tags',
    'rates set',
  ]);
  const make: Factory<Pair> = build(partial);
  expect(make().hp.rates).toEqual([1]);
  const again = cast('config', partial);
  expect(isEqual(again, copyWith(config, { rates: [1] }))).toBe(true);
  expect(build(again).hp.left.hp.size).toBe(2);
  expect(String(cast('argFactory', left))).toBe('[object Part argFactory]');
  expect(messageOf(() => cast('partal' as never, left))).toMatch(
    /^cast\(\) takes a kind of config, got 'partal'\. Did you mean 'partial'\? \(at test\/hparams\/editing\/edit\.test\.ts:\d+\)$/,
  );
  expect(messageOf(() => cast('partial', 5 as never))).toBe('cast() takes a config, got 5.');
});

test('copyWith shares sub-configs, deepCopyWith shares none; the original stays', () => {
  const left = Part.config({ size: 2 });
  const config = Pair.config({ left });
  const shallow = copyWith(config, { rates: [1, 2] });
  const deep = deepCopyWith(config, { rates: [1, 2] });
  expect([shallow.left === left, deep.left === left]).toEqual([true, false]);
  expect(isEqual(shallow, deep)).toBe(true);
  expect(config.rates).toEqual([0.5]);
  expect(history(deep, 'rates').at(-1)!.where).toMatch(/^test\/hparams\/editing\/edit\.test\.ts:\d+$/);
  // @ts-expect-error: neither field takes a string
  const action = () => copyWith(config, { rates: 'fast', tpl: 'none' });
  expect(messageOf(action)).toMatch(
    /^copyWith\(\): 2 problems:\n {2}Pair\.rates: .*\n {2}Pair\.tpl: .* \(at test\/hparams/,
  );
});

test('assign names all that is wrong, and sets what is right', () => {
  const part = Part.config();
  const message = messageOf(() => assign(part, { size: 4, sise: 1, label: 3 } as never));
  expect(message).toContain("Part has no hyperparameter 'sise'. Did you mean 'size'?");
  expect(message).toContain('Part.label: expected a string, got 3');
  expect(part.size).toBe(4);
});

test('values are given as an object, which no list, Map or config is', () => {
  const pair = Pair.config();
  const given = (values: unknown) => messageOf(() => copyWith(pair, values as never)).replace(/ \(at .*/, '');
  const hint = ' copy() and copyWith() give another config with the same values, cast() one of another kind.';
  expect([given([1]), given(new Map()), given(null), given('x'), given(pair)]).toEqual([
    'copyWith() takes an object of values, got [1].',
    'copyWith() takes an object of values, got Map {}.',
    'copyWith() takes an object of values, got null.',
    "copyWith() takes an object of values, got 'x'.",
    `copyWith() takes an object of values, got a Pair config.${hint}`,
  ]);
});

test('updateCallable changes the class where the config stands, and keeps values and history', () => {
  const shared = Part.config({ size: 12, label: 'x' });
  const pair = Pair.config({ left: shared, right: shared });
  const updated = updateCallable(shared, BigPart);
  expectTypeOf(updated).toEqualTypeOf<Config<BigPart>>();
  expect(updated).toBe(shared);
  expect([classOf(pair.left), pair.left === pair.right]).toEqual([BigPart, true]);
  expect([updated.size, updated.label, updated.extra]).toEqual([12, 'x', [1]]);
  expect(build(pair).hp.left).toBeInstanceOf(BigPart);
  const entries = history(updated);
  expect(entries.map(({ field, kind }) => `${field} ${kind}`)).toEqual(['size set', 'label set', ' class']);
  expect([entries.at(-1)!.value, entries.at(-1)!.where]).toEqual([
    BigPart,
    expect.stringMatching(/^test\/hparams\/edit/),
  ]);
});

test('updateCallable lists all that does not fit, and then has changed nothing', () => {
  const part = Part.config({ size: 2, label: 'x' });
  addTag(part, 'label', Size);
  const [text, entries] = [print(part), history(part).length];
  expect(messageOf(() => updateCallable(part, Other))).toMatch(
    /^Other cannot take over from Part; \{ dropInvalid: true \} would drop these values:\n {2}size: expected a string, got 2\n {2}label: it has no such hyperparameter\. Did you mean 'labels'\? \(at test\/hparams\/editing\/edit\.test\.ts:\d+\)$/,
  );
  expect([classOf(part), print(part), history(part).length]).toEqual([Part, text, entries]);
  expect(getTags(part, 'label')).toEqual([Size]);
  addTag(part, 'size', Size);
  const dropped = updateCallable(part, Other, { dropInvalid: true });
  expect(getTags(dropped, 'size')).toEqual([]);
  expect([dropped.size, dropped.labels, isSet(dropped, 'size')]).toEqual(['s', 0, false]);
  expect(build(dropped)).toBeInstanceOf(Other);
  // The dropped field's tags do not come back with it.
  const back = updateCallable(dropped, Part);
  expect([getTags(back, 'label'), back.label]).toEqual([[], undefined]);
  expect(messageOf(() => updateCallable(part, Date as never))).toMatch(
    /^updateCallable\(\) takes a class that extends Configurable, or a configurable\(\) target; got function Date\. \(at /,
  );
});

test('a changed class that its place does not accept is found before anything is built', () => {
  const pair = Pair.config({ left: Part.config({ size: 1 }) });
  updateCallable(pair.left, Other, { dropInvalid: true });
  expect(messageOf(() => build(pair))).toMatch(
    /^The config is not valid: left \(Pair\): expected a Part config, got an Other config; left is an Other config \(at test\/hparams\/editing\/edit\.test\.ts:\d+\)\.$/,
  );
});

test('updateCallable works on partials, functions, edited defaults, and in derive', () => {
  const scale = configurable(
    function scale(hp: { size: number }) {
      return hp.size * 2;
    },
    { size: z.number().default(1) },
  );
  const partial = updateCallable(Part.partial({ size: 4 }), scale);
  expect(build(partial)({})).toBe(8);
  const pair = Pair.config();
  pair.tpl.size = 5;
  const wide = updateCallable(pair, class Wide extends Pair.with({ more: z.int().default(0) }) {});
  expect([wide.tpl.size, wide.more]).toEqual([5, 0]);
  const original = Pair.config({ left: Part.config({ size: 11 }) });
  const edited = derive(original, (draft) => void updateCallable(draft.left, BigPart));
  expect([classOf(original.left), classOf(edited.left), edited.left.size]).toEqual([Part, BigPart, 11]);
});

test('materializeDefaults sets what was not set, with copies of its own, at the line of the caller', () => {
  const explicit = Part.config({ size: 9 });
  const pair = Pair.config({ right: explicit });
  const before = deepCopy(pair);
  const expected = 'left, right, rates, tpl';
  expect(materializeDefaults(pair)).toBe(pair);
  expect((['left', 'right', 'rates', 'tpl'] as const).filter((name) => isSet(pair, name)).join(', ')).toBe(
    expected,
  );
  expect([isSet(pair.left, 'size'), isSet(pair.left, 'label'), explicit.size]).toEqual([true, false, 9]);
  expect(isEqual(pair, before)).toBe(true);
  expect(history(pair, 'rates').map(({ where }) => where)).toEqual([
    expect.stringMatching(/^test\/hparams\/editing\/edit\.test/),
  ]);
  pair.rates.push(2);
  expect(Pair.config().rates).toEqual([0.5]);
  expect(history(explicit).length).toBe(1);
});

test('materializeDefaults looks into lists, takes drafts, and leaves what cannot be written', () => {
  class Text extends Configurable.with({
    length: z.string().transform(Number).default(5),
    part: instance(Part),
  }) {}
  const list = [Text.config(), { deep: Text.config({ length: '7' }) }] as const;
  materializeDefaults(list);
  expect([isSet(list[0], 'length'), isSet(list[0], 'part'), isSet(list[1].deep.part, 'size')]).toEqual([
    false,
    true,
    true,
  ]);
  expect(build(list[0]).hp.length).toBe(5);
  const original = Pair.config();
  const edited = derive(original, (draft) => {
    materializeDefaults(draft);
    draft.left.size = 6;
  });
  expect([isSet(original, 'left'), isSet(edited, 'left'), edited.left.size, original.left.size]).toEqual([
    false,
    true,
    6,
    1,
  ]);
});

test('withDefaultsTrimmed leaves out what equals its default, unless the sharing would change', () => {
  const pair = materializeDefaults(Pair.config());
  const less = withDefaultsTrimmed(pair);
  expect((['left', 'rates', 'tpl'] as const).map((name) => isSet(less, name))).toEqual([false, false, false]);
  expect(isSet(pair, 'left')).toBe(true);
  const shared = Part.config({ size: 1 });
  const tied = withDefaultsTrimmed(
    Pair.config({ left: shared, right: shared, tpl: Part.config({ size: 1 }) }),
  );
  expect([isSet(tied, 'left'), isSet(tied.left, 'size'), tied.left === tied.right]).toEqual([
    true,
    false,
    true,
  ]);
  // Here size 1 is the class's default, but not the field's.
  expect([isSet(tied, 'tpl'), tied.tpl.size]).toEqual([true, 1]);
});

test('trimmed shows less, and changes nothing', () => {
  const inner = Pair.config({
    left: Part.config({ label: 'a long label, much too long' }),
    rates: [1, 2, 3, 4, 5, 6],
  });
  class Tree extends Configurable.with({
    list: z.array(instance(Pair)),
    near: instance(Part).optional(),
    count: z.int(),
  }) {}
  const root = Tree.config({ list: [inner, inner], near: inner.left, count: 2 });
  const before = print(root);
  expect(print(trimmed(root, { structure: true }))).toBe(
    [
      '<root> : Tree',
      'list[0] : Pair',
      'list[0].left : Part',
      'list[1] : same as list[0]',
      'near : same as list[0].left',
    ].join('\n'),
  );
  expect(print(trimmed(root, { depth: 0 }))).toBe(
    ['<root> : Tree', 'list[0] : …Pair', 'list[1] : same as list[0]', 'near : …Part', 'count : 2'].join('\n'),
  );
  // The part is one config below the root by its shortest way.
  expect(print(trimmed(root, { depth: 1 }))).toContain('list[0].left : Part');
  expect(print(trimmed(root, { configs: [inner] }))).toContain('list[0] : …Pair\n');
  expect(print(trimmed(root, { configs: (config) => config === inner.left }))).toContain(
    'near : same as list[0].left',
  );
  expect(print(trimmed(root, { fields: ['rates'] }))).not.toContain('count');
  const short = print(trimmed(root, { longValues: 8 }));
  expect(short).toContain("list[0].left.label : 'a long l…'");
  expect(short).toContain("list[0].rates : [1, 2, '… 4 more']");
  expect(print(root)).toBe(before);
  expect(messageOf(() => build(trimmed(root)))).toMatch(
    /^This config was trimmed for display\. Build the original config\./,
  );
});

test('checkBaselineStyle bounds files and writes by the history', () => {
  const pair = Pair.config({ left: Part.config({ size: 1 }) });
  expect(() => checkBaselineStyle(pair)).not.toThrow();
  pair.left.size = 2;
  setPath(pair, 'left.size', '3', '--set left.size=3');
  expect(messageOf(() => checkBaselineStyle(pair))).toMatch(
    /^The config is hard to follow:\n {2}left\.size: written 3 times, at most 2 are fine: test\/hparams\/editing\/edit\.test\.ts:\d+, test\/hparams\/editing\/edit\.test\.ts:\d+, --set left\.size=3$/,
  );
  expect(() => checkBaselineStyle(pair, { maxWritesPerField: 3 })).not.toThrow();
  const foreign = makeGraph([
    {
      cls: 'leaf',
      value: 1,
      label: 'x',
      held: [],
      table: {},
      editsDefault: false,
      choice: undefined,
      tags: 'none',
    },
  ]);
  const both = [pair, foreign];
  expect(messageOf(() => checkBaselineStyle(both, { maxFiles: 1, maxWritesPerField: 3 }))).toBe(
    'The config is hard to follow:\n  values come from 2 files, at most 1 are fine: test/hparams/editing/edit.test.ts, test/hparams/randomGraphs.ts',
  );
});

test('random graphs: trimming, materializing and casting keep what they say they keep', () => {
  fc.assert(
    fc.property(recipes, (all) => {
      const graph = makeGraph(all);
      const text = print(graph);
      expect(isEqual(withDefaultsTrimmed(graph), graph)).toBe(true);
      const full = materializeDefaults(deepCopy(graph));
      expect(isEqual(full, graph)).toBe(true);
      expect(isEqual(withDefaultsTrimmed(full), graph)).toBe(true);
      expect(isEqual(cast('config', cast('partial', graph)), graph)).toBe(true);
      trimmed(graph, { depth: 1, longValues: 3 });
      expect(print(graph)).toBe(text);
    }),
    { numRuns: runs(1000) },
  );
});

test('long chains and diamonds are edited in one walk', () => {
  const long = chain(10_000);
  expect(isEqual(withDefaultsTrimmed(long), long)).toBe(true);
  materializeDefaults(long);
  expect(isSet(long, 'table')).toBe(true);
  expect(iterate(trimmed(long, { depth: 100 })).length).toBe(102);
  const wide = diamond(60);
  expect(iterate(withDefaultsTrimmed(materializeDefaults(wide))).length).toBe(60);
  expect(iterate(trimmed(wide, { structure: true })).length).toBe(60);
  checkBaselineStyle(wide);
  const nodes: AnyNode[] = [Inner.config(), Leaf.config(), Holder.config()];
  expect(nodes.every((node) => isEqual(withDefaultsTrimmed(node as Config<Inner>), node))).toBe(true);
});
