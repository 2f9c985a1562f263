/** @file Every kind of model on every engine: samples that share the cache of their prompt are those of plain decoding. */
import { expect, test } from 'vitest';
import { engines } from '../compiler/engines.js';
import { changes, compared, decode, expectSame, modelOf } from './sharedPrompts.js';

for (const [name, change] of Object.entries(changes))
  for (const [title, { engine, available }] of engines)
    for (const dtype of ['float32', 'bfloat16'] as const)
      test.skipIf(!available)(`${name}, ${dtype}, on ${title}`, async () => {
        const model = modelOf(change, dtype);
        const [plain, lazy] = [await decode(model, false, engine), await decode(model, true, engine)];
        expect(new Set(plain.output.decodeLengths.data).size).toBeGreaterThan(2);
        if (dtype === 'float32') return expectSame(lazy.output, plain.output);
        // Weights of a part are rounded at another size, which now and then changes a token and those behind it.
        const { alike, differences } = compared(lazy.output, plain.output);
        expect(alike).toBeGreaterThan(0.7);
        expect(Math.max(...differences)).toBeLessThan(0.1);
      });
