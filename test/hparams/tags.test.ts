/** @file Tags on fields and on values: defined once, found anywhere, and carried along by every tool. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  Configurable,
  clearTags,
  copy,
  deepCopy,
  defineTag,
  derive,
  findTag,
  fromJSON,
  getPath,
  getTags,
  history,
  isEqual,
  isSet,
  iterate,
  listPaths,
  listTags,
  materializeTags,
  pathOf,
  print,
  removeTag,
  setPath,
  setTagged,
  setTags,
  sub,
  type Tag,
  tagged,
  toJSON,
} from '../../src/hparams/index.js';
import { runs } from '../faults/campaign.js';
import { type AnyNode, makeGraph, recipes } from './randomGraphs.js';
import { messageOf } from './support.js';
import { decay, dtype, Layer, nameOnly, names, Optimizer, rate, size } from './tagFixtures.js';

test('a tag needs a description, a name that can be written, and a name of its own', () => {
  expect(nameOnly(() => defineTag('tags.bare', ' '))).toBe(
    "The tag 'tags.bare' needs a description of the fields it marks, got ' '.",
  );
  expect(nameOnly(() => defineTag('two words', 'x'))).toBe(
    "A tag's name has letters, digits, '_', '-' and '.', and begins with a letter; got 'two words'.",
  );
  expect(messageOf(() => defineTag('tags.rate', 'Another.'))).toMatch(
    /^The tag 'tags\.rate' is already defined, at test\/hparams\/tagFixtures\.ts:\d+\. \(at test\/hparams\/tags\.test\.ts:\d+\)$/,
  );
});

test('tags are found by name, with a suggestion for a slip', () => {
  expect(findTag('tags.rate')).toBe(rate);
  expect([String(decay), decay.description, decay.parent]).toEqual([
    '#tags.decay',
    'Step sizes that shrink weights.',
    rate,
  ]);
  expect([decay.isA(rate), rate.isA(decay), rate.isA(rate)]).toEqual([true, false, true]);
  expect(messageOf(() => findTag('tags.rates'))).toBe(
    "No tag 'tags.rates' is defined. Did you mean 'tags.rate'?",
  );
  expect(messageOf(() => findTag('constructor'))).toMatch(/^No tag 'constructor' is defined\./);
});

test('a declaration keeps its tags through describe, refine, default, optional, and in subclasses', () => {
  const shared = z.int();
  class Declared extends Configurable.with({
    a: tagged(shared, rate, dtype)
      .refine((value) => value > 0)
      .describe('A')
      .default(1),
    b: tagged(tagged(shared, rate), size).nullable().optional(),
    c: shared,
    d: tagged(sub(Optimizer), dtype),
    e: tagged(z.string().describe('E').transform(Number), dtype),
    f: tagged(z.string(), dtype).transform(Number),
  }) {}
  class Below extends Declared.with({ g: tagged(z.int(), size) }) {}
  const config = Below.config();
  const found = Object.fromEntries(
    (['a', 'b', 'c', 'd', 'e', 'f', 'g'] as const).map((name) => [name, names(getTags(config, name))]),
  );
  expect(found).toEqual({
    a: ['tags.dtype', 'tags.rate'],
    b: ['tags.rate', 'tags.size'],
    c: [],
    d: ['tags.dtype'],
    e: ['tags.dtype'],
    f: ['tags.dtype'],
    g: ['tags.size'],
  });
  expect(config.d.rate).toBe(0.1);
});

test('tags of a field are added, removed, replaced and cleared', () => {
  const config = Optimizer.config();
  addTag(config, 'rate', size, dtype);
  addTag(config, 'rate', size);
  expect(names(getTags(config, 'rate'))).toEqual(['tags.dtype', 'tags.rate', 'tags.size']);
  removeTag(config, 'rate', rate);
  expect(names(getTags(config, 'rate'))).toEqual(['tags.dtype', 'tags.size']);
  setTags(config, 'rate', [decay]);
  expect(names(getTags(config, 'rate'))).toEqual(['tags.decay']);
  clearTags(config, 'rate');
  expect([getTags(config, 'rate'), getTags(config, 'steps')]).toEqual([[], []]);
  expect(isSet(config, 'rate')).toBe(false);
  expect(names(getTags(Optimizer.config(), 'rate'))).toEqual(['tags.rate']);
});

test('deleting a value leaves the tags', () => {
  const config = Optimizer.config({ steps: 3 });
  addTag(config, 'steps', size);
  delete (config as { steps?: number }).steps;
  expect([config.steps, names(getTags(config, 'steps'))]).toEqual([1, ['tags.size']]);
});

test('unknown fields, absent tags and what is no tag are errors with the place', () => {
  const config = Optimizer.config();
  const here = / \(at test\/hparams\/tags\.test\.ts:\d+\)$/;
  const problem = (action: () => unknown): string => {
    expect(messageOf(action)).toMatch(here);
    return messageOf(action).replace(here, '');
  };
  const unknown = "Optimizer has no hyperparameter 'step'. Did you mean 'steps'?";
  for (const edit of [addTag, removeTag, setTags, clearTags] as ((...values: unknown[]) => void)[]) {
    expect(problem(() => edit(config, 'step', edit === (setTags as unknown) ? [rate] : rate))).toBe(unknown);
  }
  expect(problem(() => getTags(config, 'step' as 'steps'))).toBe(unknown);
  expect(problem(() => getTags(config, '__proto__' as 'steps'))).toMatch(/has no hyperparameter '__proto__'/);
  expect(problem(() => removeTag(config, 'steps', rate))).toBe(
    'The tag #tags.rate is not set on Optimizer.steps. It has no tags.',
  );
  expect(problem(() => removeTag(config, 'rate', size))).toBe(
    'The tag #tags.size is not set on Optimizer.rate. It has #tags.rate.',
  );
  expect(problem(() => addTag(config, 'rate', 'tags.size' as unknown as Tag))).toBe(
    "addTag() takes tags made by defineTag(), got 'tags.size'. findTag('tags.size') finds a tag by its name.",
  );
  expect(problem(() => tagged(z.int(), null as unknown as Tag))).toBe(
    'tagged() takes tags made by defineTag(), got null.',
  );
  expect(messageOf(() => addTag(3 as never, 'x' as never, rate))).toBe('addTag() takes a config, got 3.');
});

test('each change of tags is an entry of the history that holds all tags from then on, frozen', () => {
  const config = Optimizer.config({ rate: 0.2 });
  addTag(config, 'rate', size);
  removeTag(config, 'rate', rate);
  const entries = history(config, 'rate');
  expect(entries.map(({ kind, value }) => [kind, kind === 'tags' ? names(value as Tag[]) : value])).toEqual([
    ['set', 0.2],
    ['tags', ['tags.rate', 'tags.size']],
    ['tags', ['tags.size']],
  ]);
  expect(entries.slice(1).every((entry) => Object.isFrozen(entry.value))).toBe(true);
  expect(entries.map((entry) => entry.place!.line - entries[0]!.place!.line)).toEqual([0, 1, 2]);
});

test('copies have tags of their own; derive changes those of the result alone', () => {
  const config = Layer.config();
  addTag(config, 'width', size);
  for (const copied of [copy(config), deepCopy(config)]) {
    expect(names(getTags(copied, 'width'))).toEqual(['tags.size']);
    clearTags(copied, 'width');
  }
  const derived = derive(config, (draft) => {
    addTag(draft, 'width', dtype);
    addTag(draft.optimizer, 'steps', size);
    expect(names(getTags(draft, 'width'))).toEqual(['tags.dtype', 'tags.size']);
  });
  expect(names(getTags(config, 'width'))).toEqual(['tags.size']);
  expect(names(getTags(config.optimizer, 'steps'))).toEqual([]);
  expect(names(getTags(derived, 'width'))).toEqual(['tags.dtype', 'tags.size']);
  expect(names(getTags(derived.optimizer, 'steps'))).toEqual(['tags.size']);
  expect(history(derived, 'width').map((entry) => entry.kind)).toEqual(['tags', 'tags']);
  const same = derive(config, (draft) => {
    addTag(draft, 'width', dtype);
    removeTag(draft, 'width', dtype);
  });
  expect([isEqual(same, config, { tags: true }), history(same, 'width').length]).toEqual([true, 3]);
});

test('equality sees tags only when asked', () => {
  const left = Layer.config({ rates: [0.1] });
  const right = Layer.config({ rates: [rate.new(0.1)] });
  addTag(right.optimizer, 'steps', size);
  expect([isEqual(left, right), isEqual(right, left)]).toEqual([true, true]);
  expect([isEqual(left, right, { tags: true }), isEqual(right, deepCopy(right), { tags: true })]).toEqual([
    false,
    true,
  ]);
  expect(isEqual(Layer.config({ rates: [rate.new()] }), left)).toBe(false);
  expect(isEqual(Layer.config({ rates: [rate.new()] }), Layer.config({ rates: [rate.new()] }))).toBe(true);
  const untagged = Optimizer.config();
  removeTag(untagged, 'rate', rate);
  expect(isEqual(untagged, Optimizer.config(), { tags: true })).toBe(false);
  addTag(untagged, 'rate', rate);
  expect(isEqual(untagged, Optimizer.config(), { tags: true })).toBe(true);
});

test('a tagged value dissolves in a field: the tags join those of the declaration', () => {
  const config = Optimizer.config({ rate: size.new(0.5), decay: dtype.new() });
  expect([config.rate, isSet(config, 'decay')]).toEqual([0.5, false]);
  expect(names(getTags(config, 'rate'))).toEqual(['tags.rate', 'tags.size']);
  expect(names(getTags(config, 'decay'))).toEqual(['tags.decay', 'tags.dtype']);
  config.rate = dtype.new();
  expect(config.rate).toBe(0.5);
  config.steps = size.new(dtype.new(7));
  expect([config.steps, names(getTags(config, 'steps'))]).toEqual([7, ['tags.dtype', 'tags.size']]);
  expect(nameOnly(() => (config.steps = size.new(0.5)))).toBe(
    'Optimizer.steps: expected an integer, got 0.5',
  );
  expect(config.steps).toBe(7);
});

test('a tagged null or undefined is a value', () => {
  class Loose extends Configurable.with({ note: z.string().nullable(), list: z.array(z.any()) }) {}
  const config = Loose.config({ note: rate.new<string | null>(null), list: [rate.new(undefined)] });
  expect([isSet(config, 'note'), build(config).hp]).toEqual([true, { note: null, list: [undefined] }]);
});

test('in a container a tagged value reads, is checked and is built as its value', () => {
  const optimizer = Optimizer.config({ steps: 5 });
  const config = Layer.config({
    rates: [rate.new(0.1), 0.2],
    byName: { a: rate.new(1) },
    pair: { low: rate.new(3), high: 4 },
    names: new Map([['x', rate.new(5)]]),
    either: [size.new(2)],
    templates: [dtype.new(Optimizer.config())],
    parts: [dtype.new(optimizer), optimizer],
    data: [[size.new([dtype.new(1)])]],
  });
  expect([config.rates[0], config.rates.map((each) => each * 2), config.byName.a]).toEqual([
    0.1,
    [0.2, 0.4],
    1,
  ]);
  expect(config.rates.toSorted((a, b) => b - a)).toEqual([0.2, 0.1]);
  expect(config.rates).toEqual([0.1, 0.2]);
  config.parts[0]!.steps = 6;
  const { hp } = build(config);
  expect(hp.rates).toEqual([0.1, 0.2]);
  expect([hp.byName, hp.pair, hp.names, hp.either, hp.data]).toEqual([
    { a: 1 },
    { low: 3, high: 4 },
    new Map([['x', 5]]),
    [2],
    [[[1]]],
  ]);
  expect(hp.parts[0]).toBe(hp.parts[1]);
  expect(hp.parts[0]!.hp.steps).toBe(6);
  expect(hp.templates[0]).toBe(config.templates[0]);
  expect(nameOnly(() => (config.rates = [0.1, rate.new(-1)]))).toBe(
    'Layer.rates[1]: expected a positive number, got -1',
  );
  expect(nameOnly(() => (config.either = [size.new(0.5)]))).toMatch(/^Layer\.either.*: expected/);
});

test('paths lead through tagged values without a step of their own', () => {
  const config = Layer.config({ parts: [dtype.new(Optimizer.config({ steps: 5 }))], rates: [rate.new(2)] });
  expect(getPath(config, 'parts[0].steps')).toBe(5);
  expect(pathOf(config, config.parts[0]!)).toBe('parts[0]');
  expect(iterate(config).map((visit) => visit.config)).toEqual([config, config.parts[0]]);
  expect(listPaths(config).map((info) => info.path)).toContain('parts[0].steps');
  setPath(config, 'rates[0]', '3');
  expect([config.rates[0], names(listTags(config))]).toEqual([3, ['tags.decay', 'tags.dtype', 'tags.rate']]);
});

test('edits in place keep the tags of a value, and removing it gives the value', () => {
  const config = Layer.config({ rates: [rate.new(0.1), 0.5, size.new(0.2)] });
  config.rates[0] = 0.3;
  config.rates[0]! *= 2;
  expect(nameOnly(() => (config.rates[0] = -1))).toBe('Layer.rates[0]: expected a positive number, got -1');
  expect([config.rates[0], listTags(config.rates).length]).toEqual([0.6, 0]);
  config.rates.sort((a, b) => a - b);
  expect(config.rates).toEqual([0.2, 0.5, 0.6]);
  setTagged(config, size, 1);
  expect(config.rates).toEqual([1, 0.5, 0.6]);
  expect([config.rates.shift(), config.rates.pop(), config.rates]).toEqual([1, 0.6, [0.5]]);
});

test('a container that is assigned on takes the tags along, but is another', () => {
  const first = Layer.config({ rates: [size.new(0.1)] });
  const second = Layer.config({ rates: first.rates });
  const third = derive(first, (draft) => {
    draft.data = draft.rates;
    draft.rates = [...draft.rates, 7];
  });
  setTagged(second, size, 0.2);
  setTagged(third, size, 0.3);
  expect([first.rates, second.rates, third.data, third.rates]).toEqual([[0.1], [0.2], [0.3], [0.1, 7]]);
  const copied = copy(first);
  setTagged(copied, size, 0.4);
  expect([first.rates, copied.rates]).toEqual([[0.1], [0.4]]);
});

test('a default list with tagged values belongs to each config', () => {
  class Defaults extends Configurable.with({ list: z.array(z.int()).default([size.new(1), 2]) }) {}
  const config = Defaults.config();
  setTagged(config, size, 5);
  expect([config.list, Defaults.config().list, isSet(config, 'list')]).toEqual([[5, 2], [1, 2], true]);
});

test('a tagged value that is not set is an error of build with its path, and of reading it', () => {
  const config = Layer.config({
    rates: [1, rate.new()],
    parts: [Optimizer.config()],
    either: [size.new()],
    templates: [dtype.new()],
  });
  const holder = Layer.config({ data: 1, parts: [] });
  expect(nameOnly(() => config.rates[1])).toBe('Layer.rates: the part tagged #tags.rate is not set.');
  expect(messageOf(() => build({ task: config, holder }))).toMatch(
    new RegExp(
      [
        '^3 hyperparameters are not set:',
        String.raw`  \['task'\]\.rates\[1\] \(Layer\): expected a value for the part tagged #tags\.rate \(made at test/hparams/tags\.test\.ts:\d+\)`,
        String.raw`  \['task'\]\.either\[0\] \(Layer\): .* #tags\.size .*`,
        String.raw`  \['task'\]\.templates\[0\] \(Layer\): .* #tags\.dtype .*$`,
      ].join('\n'),
    ),
  );
  expect(nameOnly(() => (config.rates = [-1, rate.new()]))).toBe(
    'Layer.rates[0]: expected a positive number, got -1',
  );
  expect(nameOnly(() => (config.either = ['x' as unknown as number, size.new()]))).toMatch(/^Layer\.either/);
  setTagged(config, rate, 2);
  setTagged(config, size, 2);
  setTagged(config, dtype, Optimizer.config());
  expect(build(config).hp.rates).toEqual([1, 2]);
  const popped = Layer.config({ rates: [rate.new()] });
  expect([popped.rates.pop(), popped.rates]).toEqual([undefined, []]);
});

test('JSON keeps tags of fields and values, and the text shows values', () => {
  const config = Layer.config({ rates: [rate.new(0.1), size.new()], parts: [dtype.new(Optimizer.config())] });
  addTag(config, 'width', size);
  removeTag(config.optimizer, 'rate', rate);
  const read = fromJSON(JSON.stringify(toJSON(config)));
  expect(isEqual(read, config, { tags: true })).toBe(true);
  expect(isEqual(read, materializeTags(config), { tags: true })).toBe(false);
  expect(print(config)).toContain('rates[0]');
});

test('tags survive copies and derive on random graphs', () => {
  fc.assert(
    fc.property(recipes, fc.nat(), (all, which) => {
      const graph = makeGraph(all);
      const twin = makeGraph(all);
      expect(isEqual(graph, twin, { tags: true })).toBe(true);
      expect(isEqual(deepCopy(graph), graph, { tags: true })).toBe(true);
      expect(isEqual(copy(graph), graph, { tags: true })).toBe(true);
      const places = iterate(graph);
      const { path } = places[which % places.length]!;
      const edit = (root: AnyNode): void => addTag(getPath(root, path) as AnyNode, 'value', size);
      const derived = derive(graph, edit);
      expect(isEqual(graph, twin, { tags: true })).toBe(true);
      edit(twin);
      expect(isEqual(derived, twin, { tags: true })).toBe(true);
      expect(isEqual(derived, graph)).toBe(true);
      expect(isEqual(derived, graph, { tags: true })).toBe(false);
    }),
    { numRuns: runs(1000) },
  );
});
