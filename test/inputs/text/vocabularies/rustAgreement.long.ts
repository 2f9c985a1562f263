/** @file Tokenizer files beside the Rust library: every document by every text, and random compositions by the thousand. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { PretrainedTokenizer } from '../../../../src/inputs/index.js';
import { isShort } from '../../../faults/campaign.js';
import { differences, streamed } from './rustAgreement.js';
import { anyDocument, documents, texts } from './tokenizerDocuments.js';
import { prose, trainedJson } from './trainedBpe.js';

/** Byte-level documents: those that are ours to encode, and those that only look like it. */
const byteLevels = Object.entries({
  'as trained': {},
  'with a space before each text': { pre_tokenizer: { add_prefix_space: true } },
  'without words': { pre_tokenizer: { use_regex: false } },
  'with whole words': { model: { ignore_merges: true } },
  'with a token that takes spaces': { added_tokens: [{ lstrip: true }] },
  'with a token that is a word': { added_tokens: [{}, { single_word: true }] },
  'with tokens of two kinds': { added_tokens: [{ normalized: true }] },
  'with tokens that are no special ones': { added_tokens: [{ special: false }, { special: false }] },
}).map(([name, changes]) => {
  const document = JSON.parse(trainedJson([prose], 400, ['<|end|>', '<|end|>x']));
  for (const [part, values] of Object.entries(changes))
    if (Array.isArray(values))
      for (const [i, value] of values.entries()) Object.assign(document[part][i], value);
    else Object.assign(document[part], values);
  return [`byte-level ${name}`, JSON.stringify(document)] as const;
});
const anyText = fc.oneof(
  fc.constantFrom(...texts),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.array(fc.constantFrom(...texts), { maxLength: 4 }).map((some) => some.join('')),
);

/** With SHORT=1, one of six. */
const tried = documents.filter((_, i) => !isShort || i % 6 === 0);

test.each([...byteLevels, ...tried])('%s', async (_, contents) => {
  expect(await differences(contents, texts)).toEqual([]);
});

test('random compositions', async () => {
  await fc.assert(
    fc.asyncProperty(anyDocument, fc.array(anyText, { maxLength: 8 }), async (contents, some) => {
      expect(await differences(contents, some)).toEqual([]);
    }),
    { numRuns: isShort ? 50 : 3000 },
  );
});

test.each([...byteLevels, ...documents])('pieces behind any context: %s', (_, contents) => {
  const tokenizer = build(PretrainedTokenizer.config({ file: 'tokenizer.json', contents }));
  for (const text of isShort ? texts.slice(0, 8) : texts) {
    const ids = [...tokenizer.encode(text)];
    for (const from of [0, 1, ids.length >> 1]) {
      const [before, whole] = [tokenizer.decode(ids.slice(0, from)), tokenizer.decode(ids)];
      if (whole.includes('\ufffd') || !whole.startsWith(before)) continue;
      expect({ text, from, continued: streamed(tokenizer, ids, from) }).toEqual({
        text,
        from,
        continued: whole.slice(before.length),
      });
    }
  }
});
