/** @file Defects of Fiddle that configs here do not have, where no other test shows it. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  Configurable,
  cast,
  configurable,
  copy,
  deepCopy,
  defineTag,
  fromJSON,
  getTags,
  history,
  instance,
  isEqual,
  iterate,
  print,
  select,
  setPath,
  setTagged,
  tagged,
  toJSON,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

const mark = defineTag('defects.mark', 'What these tests mark.');

class Part extends Configurable.with({ size: z.int().default(1), any: z.any().optional() }) {}
class Owner extends Configurable.with({
  first: instance(Part),
  second: instance(Part),
  byKey: z.map(z.union([z.int(), z.string()]), z.any()).default(new Map()),
  list: tagged(z.array(z.int()), mark).default([1]),
}) {}

/** The message without the place, after checking that the place is in this file. */
function problemOf(action: () => unknown): string {
  const message = messageOf(action);
  expect(message).toMatch(/ \(at test\/hparams\/fiddle\/defects\.test\.ts:\d+\)$/);
  return message.replace(/ \(at .*\)$/, '');
}

test('a Map may mix numbers and texts as keys, and tells them apart', () => {
  const with1 = (entries: [number | string, unknown][]) => Owner.config({ byKey: new Map(entries) });
  const one = with1([
    [1, 'a'],
    ['1', 'b'],
  ]);
  expect(isEqual(one, deepCopy(one))).toBe(true);
  expect(
    isEqual(
      one,
      with1([
        ['1', 'b'],
        [1, 'a'],
      ]),
    ),
  ).toBe(true);
  expect(isEqual(with1([[1, 'a']]), with1([['1', 'a']]))).toBe(false);
  expect(isEqual(fromJSON(JSON.stringify(toJSON(one))), one)).toBe(true);
});

test('NaN equals itself, also in lists and after a round trip; 0 and -0 are kept apart by documents', () => {
  const config = Part.config({ any: [Number.NaN, { deep: Number.NaN }, -0] });
  expect(isEqual(config, Part.config({ any: [Number.NaN, { deep: Number.NaN }, -0] }))).toBe(true);
  for (const other of [copy(config), deepCopy(config), fromJSON(JSON.stringify(toJSON(config)))]) {
    expect(isEqual(config, other)).toBe(true);
    expect(Object.is((other as typeof config).any[2], -0)).toBe(true);
  }
  expect(isEqual(config, Part.config({ any: [0, { deep: Number.NaN }, -0] }))).toBe(false);
});

test('writes by select, tags, paths and flags have the place of the caller or the text of the flag', () => {
  const config = Part.config();
  const here = /^test\/hparams\/fiddle\/defects\.test\.ts:\d+$/;
  select(config, Part).set({ size: 2 });
  addTag(config, 'size', mark);
  setTagged(config, mark, 3);
  setPath(config, 'size', '4');
  setPath(config, 'size', '5', '--set size=5');
  const places = history(config).map(({ where }) => where);
  expect(places).toEqual([...Array(4).fill(expect.stringMatching(here)), '--set size=5']);
  expect(new Set(places).size).toBe(5);
});

test('an edit of a default never reaches the class or another config', () => {
  const [one, other] = [Owner.config(), Owner.config()];
  one.list.push(2);
  one.byKey = new Map([['x', 1]]);
  one.first.size = 9;
  expect([other.list, other.byKey.size, other.first.size]).toEqual([[1], 0, 1]);
  const { hp } = build(Owner.config());
  expect(() => (hp.list as number[]).push(3)).toThrow(TypeError);
  expect([hp.list, Owner.config().list]).toEqual([[1], [1]]);
});

test('copies of configs of functions keep tags and history', () => {
  const table = configurable((hp) => ({ ...hp }), { a: z.any(), b: z.any() }, { name: 'table' });
  const config = table.config({ a: 1 });
  addTag(config, 'a', mark);
  for (const other of [copy(config), deepCopy(config), cast('partial', config)]) {
    expect(getTags(other as typeof config, 'a')).toEqual([mark]);
    expect(history(other as typeof config).map(({ kind }) => kind)).toEqual(['set', 'tags']);
  }
});

test('a config in a tagged field or in a list is one among others for every tool', () => {
  class Tagged extends Configurable.with({
    part: tagged(instance(Part), mark),
    list: z.array(instance(Part)),
  }) {}
  const part = Part.config({ size: 4 });
  const config = Tagged.config({ part, list: [mark.new(part)] });
  expect(print(config, { tags: true, defaults: 'hide' })).toBe(
    ['<root> : Tagged', 'part : Part', 'part.size : 4', 'list[0] #defects.mark : same as part'].join('\n'),
  );
  expect(iterate(config).map((visit) => visit.config)).toEqual([config, part]);
  const { hp } = build(config);
  expect(hp.list[0]).toBe(hp.part);
});

test('a function that is a value cannot be written, and the error names its path and place beforehand', () => {
  const config = Owner.config({ second: Part.config({ any: [() => 1] }) });
  const { line } = history(config.second, 'any')[0]!.place!;
  expect(messageOf(() => toJSON(config))).toBe(
    `second.any[0]: a function has no JSON form. Describe it by a config or by plain values, or name it by registerConstant(). (at test/hparams/fiddle/defects.test.ts:${line})`,
  );
});

test('cast to what is no kind says what the kinds are', () => {
  for (const [given, shown] of [
    [String, 'function String'],
    [Part, 'function Part'],
    [undefined, 'undefined'],
  ] as const) {
    expect(problemOf(() => cast(given as never, Part.config()))).toBe(
      `cast() takes a kind of config, got ${shown}. There are config, partial, argFactory.`,
    );
  }
});

test('typos and wrong values are errors of one class, wherever they are made', () => {
  const config = Part.config() as unknown as Record<string, unknown>;
  const name = "Part has no hyperparameter 'sise'. Did you mean 'size'?";
  expect(problemOf(() => Part.config({ sise: 1 } as object))).toBe(name);
  expect(problemOf(() => (config.sise = 1))).toBe(name);
  const value = "Part.size: expected an integer, got 'x'";
  expect(problemOf(() => Part.config({ size: 'x' as never }))).toBe(value);
  expect(problemOf(() => (config.size = 'x'))).toBe(value);
});
