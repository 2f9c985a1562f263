/** @file Samples that share the cache of their prompt: the tokens of plain decoding, in less memory, on every engine. */
import { expect, test } from 'vitest';
import { SampleDecoder } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { engines } from '../compiler/engines.js';
import { changes, decode, expectSame, modelOf } from './sharedPrompts.js';

const model = modelOf(changes.plain!);
let plain: ReturnType<typeof decode> | undefined;

for (const [title, { engine, available }] of engines)
  test.skipIf(!available)(`four samples of each prompt, on ${title}`, async () => {
    plain ??= decode(model, false, engine);
    const [expected, lazy] = [await plain, await decode(model, true, engine)];
    expectSame(lazy.output, expected.output);
    expect(new Set(expected.output.decodeLengths.data).size).toBeGreaterThan(2);
    // Keys and values of 8 float32: of 12 rows with 84 places each; of 3 prompts with 74 places, and of rows with 7.
    expect(expected.bytes).toBe(2 * 8 * 4 * 12 * 84);
    expect(lazy.bytes).toBe(2 * 8 * 4 * (3 * 74 + 12 * 7));
  });

test('the size of the own caches has to be known', () => {
  const decoder = build(SampleDecoder.config({ seqlen: 9, numSamples: 2, lazyPrefixBroadcast: true }));
  expect(() => decoder.sharing(3, 5)).toThrow(
    "SampleDecoder.maxDecodeSteps: expected the size of a sample's own cache, since lazyPrefixBroadcast is set, got null.",
  );
  const alone = SampleDecoder.config({ seqlen: 9, maxDecodeSteps: 4, lazyPrefixBroadcast: true });
  expect(build(alone).sharing(3, 5)).toBeUndefined();
});
