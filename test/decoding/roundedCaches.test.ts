/** @file Caches of 8 bits: an emulation in floats, their memory, what rounding changes, and errors. */
import { expect, test } from 'vitest';
import { Stepper } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { decodeStateSpecs, FullCache } from '../../src/layers/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { attentions, decoded, decoders, expectEmulated, modelOf, SEQLEN } from './emulatedCaches.js';
import { randomParams } from './randomModels.js';

const engine = hasCompiler ? 'native' : 'onnx';
const grouped = attentions['grouped queries, rotated, in a window']!;

test('drafts and their steps read what an emulation in floats does', () =>
  expectEmulated(grouped, decoders['prompt lookup']!, engine));

test('rounding is seen', async () => {
  const [rounded, exact] = await Promise.all(
    ([8, null] as const).map((precision) =>
      decoded(modelOf(attentions.plain!, FullCache.config({ precision })), decoders.greedy!, engine),
    ),
  );
  const distances = exact!.logprobs.data.map((x, i) => Math.abs(x - rounded!.logprobs.data[i]!));
  expect(Math.max(...distances)).toBeGreaterThan(1e-4);
});

test.skipIf(!hasCompiler)(
  'machine code keeps an element in a byte, and a scale for each token and head',
  async () => {
    const bytes = async (precision: 8 | null): Promise<number> => {
      const model = modelOf(attentions.plain!, FullCache.config({ precision }));
      const stepper = await Stepper.create({
        ...{ model, params: randomParams(model, 1), rows: 2, seqlen: SEQLEN, rule: null },
        compileOptions: (name) => ({ name, engine: 'native', numThreads: 1 }),
      });
      const { stateBytes } = stepper;
      await stepper.dispose();
      return stateBytes;
    };
    const places = 2 * 2 * 2 * 4 * SEQLEN;
    expect(await bytes(null)).toBe(places * 8 * 4);
    expect(await bytes(8)).toBe(places * (8 + 4));
  },
);

test('a precision that is none of its own is named', () => {
  expect(() => FullCache.config({ precision: 4 as never })).toThrow(
    'FullCache.precision: expected 8 or null, got 4',
  );
  expect(
    Object.keys(decodeStateSpecs(build(attentions.plain!(FullCache.config({ precision: 8 }))), 1, 4)),
  ).toEqual(['kv_cache/key_state', 'kv_cache/key_scale', 'kv_cache/value_state', 'kv_cache/value_scale']);
});
