/** @file What docs/fiddle-behaviours.md says of Fiddle's behaviours, where no other test asserts it. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  assign,
  build,
  Configurable,
  cast,
  configurable,
  copy,
  copyWith,
  deepCopy,
  deepCopyWith,
  defineTag,
  derive,
  getPath,
  getTags,
  history,
  instance,
  isEqual,
  isSet,
  materializeDefaults,
  print,
  setPath,
  sub,
  toJSON,
  unset,
  updateCallable,
  withOrigin,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

const mark = defineTag('behaviours.mark', 'What these tests mark.');

class Part extends Configurable.with({ size: z.int().default(1), label: z.string().optional() }) {}
class BigPart extends Part.with({}) {}
class Pair extends Configurable.with({
  left: instance(Part),
  right: instance(Part),
  tpl: sub(Part),
  list: z.array(z.int()).default([1, 2]),
  table: z.record(z.string(), z.int()).default({}),
  must: z.int().optional(),
}) {}

/** The message without the place, after checking that the place is in this file. */
function problemOf(action: () => unknown): string {
  const message = messageOf(action);
  expect(message).toMatch(/ \(at test\/hparams\/fiddle\/behaviours\.test\.ts:\d+\)$/);
  return message.replace(/ \(at .*\)$/, '');
}

test('a config holds values by name and calls nothing; build calls once', () => {
  const calls: object[] = [];
  const record = configurable(
    function record(hp: { a: number; k: number }) {
      calls.push(hp);
      return hp.a + hp.k;
    },
    { a: z.number(), k: z.number().default(2) },
  );
  const config = record.config({ a: 1 });
  expect([config.a, config.k, calls]).toEqual([1, 2, []]);
  expect([build(config), calls]).toEqual([3, [{ a: 1, k: 2 }]]);
});

test('deleting what was not set leaves the default', () => {
  const config = Part.config();
  unset(config, 'size');
  unset(config, 'label');
  delete (config as Partial<{ size: number }>).size;
  expect([config.size, isSet(config, 'size'), config.label]).toEqual([1, false, undefined]);
});

test('hyperparameters may have the names of methods, functions and of what JavaScript looks for', async () => {
  const number = z.int();
  class Named extends Configurable.with({
    ...{ config: number, partial: number, hp: number, setup: number, build: number, self: number },
    ...{ kwargs: number, values: number, name: number, length: number, toString: number, toJSON: number },
  }) {}
  const values = {
    ...{ config: 1, partial: 2, hp: 3, setup: 4, build: 5, self: 6 },
    ...{ kwargs: 7, values: 8, name: 9, length: 10, toString: 11, toJSON: 12 },
  };
  const config = Named.config(values);
  expect(await config).toBe(config);
  expect(build(config).hp).toEqual(values);
  expect(toJSON(config).configs[0]!.values).toEqual(values);
  expect(JSON.parse(JSON.stringify(config))).toEqual(values);
  expect(print(config).split('\n').slice(1)).toEqual(
    Object.entries(values).map(([name, value]) => `${name} : ${value}`),
  );
});

test('a config made of a config, or of what has no names, is an error that says what to call', () => {
  const part = Part.config({ size: 3 });
  const hint = 'copy() and copyWith() give another config with the same values, cast() one of another kind.';
  expect(problemOf(() => Part.config(part as never))).toBe(
    `Part.config() takes an object of values, got a Part config. ${hint}`,
  );
  expect(problemOf(() => Part.partial(part as never))).toBe(
    `Part.partial() takes an object of values, got a Part config. ${hint}`,
  );
  expect(problemOf(() => assign(part, Part.config() as never))).toBe(
    `assign() takes an object of values, got a Part config. ${hint}`,
  );
  const positional: [unknown, string][] = [
    [3, '3'],
    [null, 'null'],
    ['ab', "'ab'"],
    [[1], '[1]'],
    [new Map([['size', 2]]), "Map {'size' => 2}"],
  ];
  for (const [given, shown] of positional) {
    expect(problemOf(() => Part.config(given as never))).toBe(
      `Part.config() takes an object of values, got ${shown}.`,
    );
  }
  expect(problemOf(() => copyWith(part, null as never))).toBe(
    'copyWith() takes an object of values, got null.',
  );
});

test('a value that a function makes by default is read, edited and built, and belongs to one config', () => {
  let made = 0;
  class Made extends Configurable.with({
    list: z.array(z.int()).default(() => {
      made += 1;
      return [made];
    }),
    part: instance(Part, () => Part.config({ size: 7 })),
  }) {}
  const config = Made.config();
  config.list.push(5);
  config.part.label = 'x';
  const { hp } = build(config);
  expect([hp.list.at(-1), hp.part.hp]).toEqual([5, { size: 7, label: 'x' }]);
  expect(Made.config().list).not.toContain(5);
  expect(Made.config().part.label).toBe(undefined);
});

test('configs are keys of Maps and members of Sets by identity', () => {
  const [one, twin] = [Part.config({ size: 2 }), Part.config({ size: 2 })];
  const names = new Map([[one, 'one']]);
  expect([names.get(one), names.get(twin), new Set([one, twin, one]).size]).toEqual(['one', undefined, 2]);
});

test('items of lists count from the end in paths; a hole or an item beyond the end is an error', () => {
  const config = Pair.config({ list: [1, 2, 3] });
  setPath(config, 'list[-1]', 9);
  expect([getPath(config, 'list[-1]'), config.list]).toEqual([9, [1, 2, 9]]);
  expect(problemOf(() => delete (config.list as (number | undefined)[])[0])).toBe(
    'Pair.list[0]: expected an integer, got undefined',
  );
  expect(problemOf(() => (config.list[4] = 1))).toBe('Pair.list[3]: expected an integer, got undefined');
  expect(config.list).toHaveLength(3);
  expect(problemOf(() => setPath(config, 'list[5]', 1))).toBe(
    "No 'list[5]': 'list' has 3 elements, counted from 0.",
  );
  expect(config.list).toEqual([1, 2, 9]);
  config.list.length = 0;
  expect(config.list).toEqual([]);
});

test('a slice of a list is a copy', () => {
  const config = Pair.config({ list: [1, 2, 3] });
  config.list.slice(1).push(4);
  expect([config.list, history(config).length]).toEqual([[1, 2, 3], 1]);
});

test('an explicit default equals an unset one', () => {
  expect(isEqual(Part.config({ size: 1 }), Part.config())).toBe(true);
  expect(isEqual(Pair.config({ left: Part.config(), list: [1, 2] }), Pair.config())).toBe(true);
  expect(isEqual(Part.config({ size: 2 }), Part.config())).toBe(false);
});

test('another kind, a subclass, another class and a value that is no config are unequal, both ways', () => {
  const part = Part.config();
  const others = [Part.partial(), Part.argFactory(), BigPart.config(), Pair.config(), 5, null, Part, {}];
  for (const other of others) {
    expect([isEqual(part, other), isEqual(other, part)]).toEqual([false, false]);
  }
  expect(isEqual(part, Part.config())).toBe(true);
});

test('lists of configs are equal only with the same sharing', () => {
  const [a, b] = [Part.config(), Part.config()];
  expect([isEqual([a, a], [b, b]), isEqual([a, b], [b, a])]).toEqual([true, true]);
  expect([isEqual([a, a], [a, b]), isEqual([a, b], [a, a])]).toEqual([false, false]);
});

test('equality asks neither for the order of keys, nor for history or tags', () => {
  const one = Pair.config({ table: { a: 1, b: 2 }, must: 1 });
  const other = Pair.config({ must: 0, table: { b: 2, a: 1 } });
  other.must = 1;
  addTag(other, 'must', mark);
  expect(isEqual(one, other)).toBe(true);
  expect(isEqual(one, copyWith(other, { table: { a: 2, b: 1 } }))).toBe(false);
});

test('a copy is set alone and shares its configs; a deep copy shares nothing and keeps the sharing inside', () => {
  const part = Part.config({ size: 2 });
  const pair = Pair.config({ left: part, right: part });
  const shallow = copy(pair);
  shallow.must = 3;
  shallow.left.size = 4;
  expect([pair.must, pair.left.size, shallow.left === part]).toEqual([undefined, 4, true]);
  const deep = deepCopy(pair);
  deep.left.size = 5;
  expect([part.size, deep.right.size, deep.left === deep.right]).toEqual([4, 5, true]);
  const before = history(part).length;
  expect(history(deep.left).length).toBe(before + 1);
});

test('copies with other values have lists and tags of their own', () => {
  const pair = Pair.config({ list: [1] });
  addTag(pair, 'list', mark);
  for (const other of [copyWith(pair, { must: 3 }), deepCopyWith(pair, { must: 3 })]) {
    other.list.push(2);
    expect(getTags(other, 'list')).toEqual([mark]);
    addTag(other, 'must', mark);
  }
  expect([pair.list, pair.must, getTags(pair, 'must')]).toEqual([[1], undefined, []]);
});

test('a misspelt name is the same error in configs, partials and argFactories', () => {
  const message = "Part has no hyperparameter 'sise'. Did you mean 'size'?";
  for (const config of [Part.config(), Part.partial(), Part.argFactory(), cast('partial', Part.config())]) {
    const loose = config as unknown as Record<string, unknown>;
    expect(problemOf(() => (loose.sise = 1))).toBe(message);
    expect(problemOf(() => loose.sise)).toBe(message);
  }
});

test('a given origin holds inside of its block alone, also where the block throws', () => {
  const config = Part.config();
  expect(() =>
    withOrigin('outer', () => {
      config.size = 2;
      withOrigin('inner', () => (config.size = 3));
      config.size = 4;
      throw new RangeError('x');
    }),
  ).toThrow(RangeError);
  config.size = 5;
  expect(history(config).map(({ where }) => where)).toEqual([
    'outer',
    'inner',
    'outer',
    expect.stringMatching(/^test\/hparams\/fiddle\/behaviours\.test\.ts:\d+$/),
  ]);
});

test('withOrigin ends when its function returns: an async one is refused', () => {
  expect(messageOf(() => withOrigin('flag', async () => 1))).toBe(
    'The function given to withOrigin() must not be async: later writes are not attributed.',
  );
});

test('the history of a misspelt field is an error, that of a field which the class had before is not', () => {
  const config = Part.config({ label: 'x' });
  expect(history(config, 'size')).toEqual([]);
  expect(problemOf(() => history(config, 'lable'))).toBe(
    "Part has no hyperparameter 'lable'. Did you mean 'label'?",
  );
  const other = updateCallable(config, Pair, { dropInvalid: true });
  expect(history(other, 'label').map(({ kind }) => kind)).toEqual(['set', 'delete']);
  expect(history(other, '').map(({ kind }) => kind)).toEqual(['class']);
});

test('changes by path of a derived config reach all places of a shared one, and leave the original alone', () => {
  const part = Part.config({ size: 1 });
  const pair = Pair.config({ left: part, right: part });
  const changed = derive(pair, (draft) => {
    for (const [path, text] of Object.entries({ 'left.size': '8', 'list[0]': '5' }))
      setPath(draft, path, text);
  });
  expect([changed.left.size, changed.right.size, changed.list]).toEqual([8, 8, [5, 2]]);
  expect([part.size, pair.left === part, pair.list]).toEqual([1, true, [1, 2]]);
});

test('materialized defaults show as values that were set', () => {
  const pair = materializeDefaults(Pair.config({ left: Part.config({ size: 5 }) }));
  expect(print(pair, { defaults: 'hide' })).toBe(
    [
      '<root> : Pair',
      'left : Part',
      'left.size : 5',
      'right : Part',
      'right.size : 1',
      'tpl : Part',
      'tpl.size : 1',
      'list : [1, 2]',
      'table : {}',
    ].join('\n'),
  );
});
