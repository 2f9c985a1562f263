/** @file Printing. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Configurable, instance, print, toJSON } from '../../src/hparams/index.js';

class Leaf extends Configurable.with({ size: z.int(), scale: z.number().default(1) }) {}
class Root extends Configurable.with({
  left: instance(Leaf),
  right: instance(Leaf),
  list: z.array(z.union([instance(Leaf), z.string()])).default([]),
  table: z.record(z.string(), z.any()).default({}),
  when: z.date().optional(),
  make: z.any().optional(),
}) {}

test('print gives a line for each field, defaults filled in, shared configs once', () => {
  const shared = Leaf.config({ size: 3 });
  const root = Root.config({
    right: shared,
    list: [shared, 'x'],
    table: { k: [1, 2], 'a b': Leaf.config({ size: 4 }) },
  });
  expect(print(root)).toBe(
    [
      '<root> : Root',
      'left : Leaf',
      'left.size : <not set>',
      'left.scale : 1',
      'right : Leaf',
      'right.size : 3',
      'right.scale : 1',
      'list[0] : same as right',
      "list[1] : 'x'",
      "table['k'] : [1, 2]",
      "table['a b'] : Leaf",
      "table['a b'].size : 4",
      "table['a b'].scale : 1",
      'when : undefined',
      'make : undefined',
    ].join('\n'),
  );
  expect(print({ task: Leaf.config({ size: 1 }) })).toBe(
    "['task'] : Leaf\n['task'].size : 1\n['task'].scale : 1",
  );
});

test('print does not store the defaults that it shows', () => {
  const root = Root.config();
  const before = JSON.stringify(toJSON(root));
  print(root);
  expect(JSON.stringify(toJSON(root))).toBe(before);
});
