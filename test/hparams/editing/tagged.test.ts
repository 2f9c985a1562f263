import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  Configurable,
  deepCopy,
  derive,
  getTags,
  history,
  instance,
  isEqual,
  listTags,
  materializeTags,
  registerContainer,
  removeTag,
  setTagged,
  tagged,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';
import { decay, dtype, Layer, nameOnly, names, Optimizer, rate, size } from '../tagFixtures.js';

test('setTagged sets fields with the tag or one below it, in the part of the graph that it is given', () => {
  const config = Layer.config({ templates: [Optimizer.config()] });
  expect(setTagged(config, rate, 0.5)).toBe(4);
  expect([config.optimizer.rate, config.optimizer.decay, config.templates[0]!.decay]).toEqual([
    0.5, 0.5, 0.5,
  ]);
  expect(setTagged(config, decay, 0.25)).toBe(2);
  expect([config.optimizer.rate, config.optimizer.decay]).toEqual([0.5, 0.25]);
  setTagged(config.optimizer, rate, 1);
  expect([config.optimizer.rate, config.templates[0]!.rate]).toEqual([1, 0.5]);
  addTag(config, 'width', size, dtype);
  setTagged(config, dtype, 3);
  expect(config.width).toBe(3);
  expect(setTagged([config, config.optimizer], decay, 0)).toBe(2);
});

test('setTagged: each place has a deep copy of its own, unless they share', () => {
  class Two extends Configurable.with({
    a: tagged(instance(Optimizer), dtype),
    b: tagged(instance(Optimizer), dtype),
    c: tagged(z.array(z.int()), size).default([]),
    d: tagged(z.array(z.int()), size).default([]),
  }) {}
  const config = Two.config();
  const value = Optimizer.config({ steps: 9 });
  setTagged(config, dtype, value);
  setTagged(config, size, [1]);
  config.c.push(2);
  expect(new Set([config.a, config.b, value]).size).toBe(3);
  expect([config.a.steps, config.c, config.d]).toEqual([9, [1, 2], [1]]);
  setTagged(config, dtype, value, { share: true });
  expect([config.a === value, config.b === value]).toEqual([true, true]);
});

test('setTagged: where the value does not fit one of the places, none is set', () => {
  class Decays extends Configurable.with({ decay: tagged(z.number().min(0), decay).default(0.5) }) {}
  const [first, second] = [Decays.config({ decay: 0.1 }), Optimizer.config()];
  expect(nameOnly(() => setTagged([first, second], rate, 0))).toBe(
    'Optimizer.rate: expected a positive number, got 0',
  );
  expect([first.decay, history(first, 'decay').length]).toEqual([0.1, 1]);
});

test('setTagged: no match is an error that lists the tags there are, unless none is allowed', () => {
  expect(messageOf(() => setTagged(Optimizer.config(), size, 1))).toMatch(
    /^Nothing in an Optimizer config is tagged #tags\.size\. The tags there are #tags\.decay, #tags\.rate\. If that is fine, pass \{ allowEmpty: true \}\. \(at test\/hparams\/editing\/tagged\.test\.ts:\d+\)$/,
  );
  class Bare extends Configurable.with({}) {}
  expect(nameOnly(() => setTagged(Bare.config(), size, 1))).toBe(
    'Nothing in a Bare config is tagged #tags.size. Nothing there has tags. If that is fine, pass { allowEmpty: true }.',
  );
  expect(setTagged(Optimizer.config(), size, 1, { allowEmpty: true })).toBe(0);
  expect(nameOnly(() => setTagged(Optimizer.config(), rate, -1))).toBe(
    'Optimizer.rate: expected a positive number, got -1',
  );
});

test('setTagged in derive leaves the original alone', () => {
  const config = Layer.config({ rates: [rate.new(1)], parts: [Optimizer.config()] });
  const before = deepCopy(config);
  const derived = derive(config, (draft) => {
    setTagged(draft, rate, 4);
    expect(draft.parts[0]!.rate).toBe(4);
  });
  expect(isEqual(config, before, { tags: true })).toBe(true);
  expect([derived.rates, derived.parts[0]!.rate, derived.optimizer.rate]).toEqual([[4], 4, 4]);
  expect(listTags(derived)).toEqual(listTags(config));
});

test('setTagged reaches tagged values in tagged values, and in registered containers', () => {
  class Box {
    constructor(readonly inside: unknown) {}
  }
  registerContainer(Box, { flatten: (box) => [box.inside], unflatten: ([inside]) => new Box(inside) });
  const config = Layer.config({
    data: [dtype.new([size.new(1), 2]), new Box(size.new(3))],
    names: new Map([['x', size.new(4)]]),
  });
  expect(setTagged(config, size, 9)).toBe(3);
  const { hp } = build(config);
  expect(hp.data).toEqual([[9, 2], new Box(9)]);
  expect(hp.names).toEqual(new Map([['x', 9]]));
  expect(names(listTags(config))).toContain('tags.dtype');
});

test('listTags lists the tags of fields and values, with those above them if asked', () => {
  const config = Optimizer.config();
  removeTag(config, 'rate', rate);
  expect(listTags(config)).toEqual([decay]);
  expect(listTags(config, { superclasses: true })).toEqual([decay, rate]);
  expect(listTags([Layer.config({ rates: [size.new(1)] })])).toEqual([decay, rate, size]);
});

test('materializeTags puts values in place of tagged values, in a copy', () => {
  const config = Layer.config({ rates: [rate.new(0.1), size.new()], data: [[dtype.new(rate.new(1))]] });
  config.optimizer.rate = 2;
  const before = deepCopy(config);
  const plain = materializeTags(config);
  expect(isEqual(config, before, { tags: true })).toBe(true);
  expect(plain.rates[0]).toBe(0.1);
  expect(names(listTags(plain))).toEqual(['tags.decay', 'tags.rate', 'tags.size']);
  expect(getTags(plain.optimizer, 'rate')).toEqual([rate]);
  const cleared = materializeTags(config, { clearFields: true });
  expect([getTags(cleared.optimizer, 'rate'), names(listTags(cleared.optimizer))]).toEqual([[], []]);
  const partly = materializeTags(config, { tags: [rate], clearFields: true });
  expect(names(listTags(partly))).toEqual(['tags.dtype', 'tags.size']);
  expect(partly.data).toEqual([[1]]);
  class Unset extends Configurable.with({ must: tagged(z.int(), size) }) {}
  expect(getTags(materializeTags(Unset.config(), { clearFields: true }), 'must')).toEqual([size]);
});
