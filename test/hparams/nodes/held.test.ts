/** @file Defaults: whose they are, when they count as set, and that they stay one object in two places. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  type ConfigOf,
  Configurable,
  copy,
  deepCopy,
  derive,
  fromJSON,
  isEqual,
  isSet,
  sub,
  toJSON,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class Linear extends Configurable.with({
  inputDims: z.int().positive(),
  outputDims: z.int().positive(),
  hasBias: z.boolean().default(true),
}) {}

test('editing a config in a default list makes the list explicit, for every tool', () => {
  class Listed extends Configurable.with({
    layers: z.array(sub(Linear)).default(() => [Linear.config({ inputDims: 1 })]),
  }) {}
  const config = Listed.config();
  expect([config.layers[0]!.inputDims, isSet(config, 'layers')]).toEqual([1, false]);
  config.layers[0]!.inputDims = 2;
  expect(isSet(config, 'layers')).toBe(true);
  expect(deepCopy(config).layers[0]!.inputDims).toBe(2);
  expect(copy(config).layers[0]).toBe(config.layers[0]);
  expect((fromJSON(toJSON(config)) as typeof config).layers[0]!.inputDims).toBe(2);
  const derived = derive(config, (draft) => {
    draft.layers[0]!.outputDims = 3;
  });
  expect([derived.layers[0]!.inputDims, derived.layers[0]!.outputDims]).toEqual([2, 3]);
  const fresh = derive(Listed.config(), (draft) => {
    draft.layers[0]!.outputDims = 3;
  });
  expect(fresh.layers[0]!.outputDims).toBe(3);
  expect(messageOf(() => config.layers[0]!.outputDims)).toContain('is not set');
});

test('a default that is put elsewhere too stays one object in copies and documents', () => {
  class Inner extends Configurable.with({ size: z.int().default(1) }) {}
  class Outer extends Configurable.with({
    first: sub(Inner),
    second: sub(Inner, null).optional(),
    list: z.array(sub(Inner)).default([]),
  }) {}
  for (const tie of [
    (config: ConfigOf<typeof Outer>) => void (config.second = config.first),
    (config: ConfigOf<typeof Outer>) => void config.list.push(config.first),
  ]) {
    const config = Outer.config();
    tie(config);
    for (const twin of [deepCopy(config), fromJSON(toJSON(config)), copy(config)]) {
      expect(isEqual(config, twin)).toBe(true);
    }
    expect(isEqual(config, deepCopy(Outer.config({ second: Inner.config() })))).toBe(false);
  }
});

test("configs in the default of a container are each config's own, with the sharing that the default has", () => {
  const size = z.int().default(1);
  class Part extends Configurable.with({ size }) {}
  class Pair extends Configurable.with({ left: sub(Part), right: sub(Part) }) {}
  const part = Part.config();
  const pair = Pair.config({ left: part, right: part });
  class Owner extends Configurable.with({
    list: z.array(sub(Configurable)).default([part, pair]),
    table: z.record(z.string(), sub(Part)).default({ a: part, b: part }),
    map: z.map(z.string(), sub(Part)).default(new Map([['x', part]])),
    made: z.array(sub(Part)).default(() => [part, Part.config()]),
    tpl: sub(Pair, () => Pair.config({ left: part })),
  }) {}
  const config = Owner.config();
  const parts = (owner: typeof config) => {
    const [first, second] = owner.list as [typeof part, typeof pair];
    return [first, second.left, owner.table.a!, owner.map.get('x')!, owner.made[0]!, owner.tpl.left];
  };
  const [first, held] = parts(config);
  expect([first === held, config.table.a === config.table.b, config.list[0] === first]).toEqual([
    true,
    true,
    true,
  ]);
  expect(['list', 'table', 'map', 'made', 'tpl'].map((name) => isSet(config, name as 'list'))).toEqual(
    Array(5).fill(false),
  );
  for (const [i, each] of parts(config).entries()) each.size = i + 2;
  expect(parts(config).map((each) => each.size)).toEqual([3, 3, 4, 5, 6, 7]);
  expect([part.size, parts(Owner.config()).map((each) => each.size)]).toEqual([1, Array(6).fill(1)]);
  expect(isEqual(Owner.config(), Owner.config())).toBe(true);
});
