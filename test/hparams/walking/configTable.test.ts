/** @file Tables by config: what Map says, for configs made close together and far apart, and for other keys. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { nodeOf } from '../../../src/hparams/nodes/node.js';
import { ConfigTable } from '../../../src/hparams/walking/configTable.js';
import { Configurable } from '../../../src/index.js';

class Leaf extends Configurable.with({ value: z.number().default(0) }) {}

test('holds what was set last, as Map does, and forgets what was set to undefined', () => {
  const nodes = Array.from({ length: 1000 }, () => nodeOf(Leaf.config())!);
  const others = [[], {}, new Map()];
  const keys = [...nodes, ...others];
  const writes = fc.array(
    fc.tuple(fc.nat(keys.length - 1), fc.option(fc.nat(), { nil: undefined, freq: 3 })),
    { maxLength: 400 },
  );
  fc.assert(
    fc.property(writes, (all) => {
      const table = new ConfigTable<number>();
      const map = new Map<unknown, number | undefined>();
      for (const [at, value] of all) {
        table.set(keys[at], value);
        map.set(keys[at], value);
        expect(table.get(keys[at])).toBe(value);
      }
      expect(keys.map((key) => table.get(key))).toEqual(keys.map((key) => map.get(key)));
    }),
    { seed: 5, numRuns: 100 },
  );
});
