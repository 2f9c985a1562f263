/** @file Every kind of model on every engine: samples that share the cache of their prompt are those of plain decoding. */
import { expect, test } from 'vitest';
import { engines } from '../compiler/engines.js';
import { oneIn, title } from '../faults/campaign.js';
import { changes, compared, decode, expectSame, modelOf } from './sharedPrompts.js';

const cases = Object.entries(changes).flatMap(([name, change]) =>
  engines.flatMap(([on, { engine, available }]) =>
    (['float32', 'bfloat16'] as const).map((dtype) => ({
      ...{ name: `${name}, ${dtype}, on ${on}`, change, engine, available, dtype },
    })),
  ),
);

// One in five has most models, and every engine with every dtype.
for (const { name, change, engine, available, dtype } of oneIn(5, cases))
  test.skipIf(!available)(title(name), async () => {
    const model = modelOf(change, dtype);
    const [plain, lazy] = [await decode(model, false, engine), await decode(model, true, engine)];
    expect(new Set(plain.output.decodeLengths.data).size).toBeGreaterThan(2);
    if (dtype === 'float32') return expectSame(lazy.output, plain.output);
    // Weights of a part are rounded at another size, which now and then changes a token and those behind it.
    const { alike, differences } = compared(lazy.output, plain.output);
    expect(alike).toBeGreaterThan(0.7);
    expect(Math.max(...differences)).toBeLessThan(0.1);
  });
