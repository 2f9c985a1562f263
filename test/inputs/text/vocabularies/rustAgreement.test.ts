/** @file Tokenizer files beside the Rust library: every document on some texts; rustAgreement.long.ts has all of them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { PretrainedTokenizer } from '../../../../src/inputs/index.js';
import { differences } from './rustAgreement.js';
import { anyDocument, documentOf, documents, texts } from './tokenizerDocuments.js';

test('documents give the ids and the text of the Rust library', async () => {
  expect([documents.length >= 78, texts.length >= 64]).toEqual([true, true]);
  expect(new Set(documents.map(([, contents]) => contents)).size).toBe(documents.length);
  for (const [i, [name, contents]] of documents.entries()) {
    const some = texts.filter((_, at) => (at + i) % 8 === 0);
    expect({ name, differences: await differences(contents, some) }).toEqual({ name, differences: [] });
  }
});

test('random compositions give the ids and the text of the Rust library', async () => {
  await fc.assert(
    fc.asyncProperty(anyDocument, fc.subarray([...texts], { maxLength: 4 }), async (contents, some) => {
      expect(await differences(contents, some)).toEqual([]);
    }),
    { numRuns: 20 },
  );
});

const words = (tokens: readonly string[], parts: object = {}) => {
  const vocab = Object.fromEntries(['<unk>', ...tokens].map((token, id) => [token, id]));
  const contents = documentOf({ model: { type: 'WordLevel', unk_token: '<unk>', vocab }, ...parts });
  return build(PretrainedTokenizer.config({ file: 'tokenizer.json', contents }));
};
/** Tokens of a text as the split gives them. */
const split = (text: string, tokens: readonly string[], pre_tokenizer: object): (string | undefined)[] => {
  const tokenizer = words(tokens, { pre_tokenizer });
  return [...tokenizer.encode(text)].map((id) => tokenizer.tokens.get(id));
};

test('words of any letters are words, and splits keep, drop or merge what they find', () => {
  expect(split('café au lait', ['café', 'au', 'lait'], { type: 'Whitespace' })).toEqual([
    'café',
    'au',
    'lait',
  ]);
  const dashes = { type: 'Split', pattern: { String: '-' }, invert: false };
  const tokens = ['a', 'b', '-', '--', 'a-', '-b'];
  const by = (behavior: string) => split('a--b', tokens, { ...dashes, behavior });
  expect(by('Removed')).toEqual(['a', 'b']);
  expect(by('Isolated')).toEqual(['a', '-', '-', 'b']);
  expect(by('MergedWithPrevious')).toEqual(['a-', '-', 'b']);
  expect(by('MergedWithNext')).toEqual(['a', '-', '-b']);
  expect(by('Contiguous')).toEqual(['a', '--', 'b']);
  const points = (behavior: string) =>
    split('a?!b', ['a', 'b', 'a?', '!b', '?', '!', '?!'], { type: 'Punctuation', behavior });
  expect(points('Removed')).toEqual(['a', 'b']);
  expect(points('Contiguous')).toEqual(['a', '?!', 'b']);
  const model = {
    ...{ type: 'BPE', continuing_subword_prefix: '##', merges: ['t ##h', 'th ##e'] },
    vocab: { t: 0, '##h': 1, '##e': 2, th: 3, the: 4 },
  };
  const pieces = build(PretrainedTokenizer.config({ file: 'x', contents: documentOf({ model }) }));
  expect([...pieces.encode('the')]).toEqual([4]);
});

test.each<[string, object, string]>([
  [
    'an unknown normalizer',
    { normalizer: { type: 'NFKc' } },
    `normalizer: type "NFKc" is not known. Did you mean 'NFKC'? The types are: BertNormalizer, Strip, StripAccents, NFC, NFD, NFKC, NFKD, Sequence, Lowercase, Nmt, ByteLevel, Precompiled, Replace, Prepend.`,
  ],
  [
    'an unknown part of a sequence',
    { pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits' }, { type: 'Magic' }] } },
    'pre_tokenizer.pretokenizers[1]: type "Magic" is not known. The types are: BertPreTokenizer, Whitespace, WhitespaceSplit, UnicodeScripts, ByteLevel, CharDelimiterSplit, Metaspace, Sequence, Split, Punctuation, Digits, FixedLength.',
  ],
  [
    'a part without a type',
    { decoder: {} },
    'decoder: type nothing is not known. The types are: BPEDecoder, ByteLevel, WordPiece, Metaspace, CTC, Sequence, Fuse, ByteFallback, Strip, Replace.',
  ],
  [
    'a split of no kind',
    { pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'removed' } },
    'pre_tokenizer (Split).behavior: Invalid option: expected one of "Removed"|"Isolated"|"MergedWithPrevious"|"MergedWithNext"|"Contiguous".',
  ],
  [
    'what would end the process',
    { pre_tokenizer: { type: 'FixedLength', length: 0 } },
    'pre_tokenizer (FixedLength).length: Too small: expected number to be >0.',
  ],
  [
    'a text that is cut twice',
    { decoder: { type: 'Strip', content: ' ', start: 1, stop: 1 } },
    'decoder (Strip): expected 0 for start or for stop.',
  ],
  [
    'rules that are none',
    { normalizer: { type: 'Precompiled', precompiled_charsmap: 'AAAA' } },
    'normalizer (Precompiled).precompiled_charsmap: expected rules of SentencePiece in base64.',
  ],
  [
    'an unknown model',
    { model: { type: 'Words' } },
    "model: type 'Words' is not known. The types are: BPE, WordPiece, WordLevel, Unigram.",
  ],
  [
    'a merge of unknown tokens',
    { model: { type: 'BPE', vocab: { a: 0, b: 1 }, merges: ['a b'] } },
    'model (BPE).merges.0 "a b": \'ab\' is not in the vocabulary.',
  ],
  [
    'a merge without the prefix',
    { model: { type: 'BPE', continuing_subword_prefix: '##', vocab: { a: 0, b: 1 }, merges: ['a b'] } },
    'model (BPE).merges.0 "a b": the second token does not begin with continuing_subword_prefix \'##\'.',
  ],
  [
    'random merges',
    { model: { type: 'BPE', dropout: 0.1, vocab: { a: 0 }, merges: [] } },
    'model (BPE).dropout: expected null: ids that are drawn anew each time are not supported.',
  ],
  [
    'an id that is not kept',
    { added_tokens: [{ id: 7, content: '<x>' }] },
    "added_tokens: '<x>' has id 7, and the Rust library gives it 2: that of the vocabulary, or the next one behind it.",
  ],
  ...(['BPE', 'WordPiece', 'WordLevel'] as const).flatMap((type): [string, object, string][] => {
    const model = (vocab: unknown) => ({ model: { type, vocab, ...(type === 'BPE' && { merges: [] }) } });
    const path = `model (${type}).vocab`;
    const range = 'expected an integer from 0 to 2147483647.';
    return [
      ...[-1, 0.5, 2 ** 31, 1e300, null, '1', [1]].map((id): [string, object, string] => [
        `an id ${JSON.stringify(id)} of ${type}`,
        model({ a: 0, 'b\n': id }),
        `${path}: "b\\n" has id ${JSON.stringify(id)}: ${range}`,
      ]),
      [`an id of two tokens of ${type}`, model({ a: 0, b: 1, c: 1 }), `${path}: "b" and "c" have one id, 1.`],
      [
        `an id far beyond the next of ${type}`,
        model({ a: 0, b: 1_000_001 }),
        `${path}: "b" has id 1000001, and there are 2 tokens: at most 100000 ids may be unused.`,
      ],
      [
        `a list for a vocabulary of ${type}`,
        model([['a', 0]]),
        `${path}: expected an object of ids by token, got a list, which a Unigram has.`,
      ],
    ];
  }),
  [
    'a vocabulary of a Unigram that is an object',
    { model: { type: 'Unigram', vocab: { a: 0 } } },
    'model (Unigram).vocab: expected a list of pieces, each with its score, got {"a":0}.',
  ],
  [
    'a piece without a score',
    {
      model: {
        type: 'Unigram',
        vocab: [
          ['a', 0],
          ['b', null],
        ],
      },
    },
    'model (Unigram).vocab.1: expected a piece with its score, got ["b",null].',
  ],
  [
    'a piece that stands twice',
    {
      model: {
        type: 'Unigram',
        vocab: [
          ['a', 0],
          ['b', -1],
          ['a', -2],
        ],
      },
    },
    'model (Unigram).vocab: "a" stands twice, at 0 and at 2.',
  ],
  ...[-1, 0.5, 2 ** 31, null].map((id): [string, object, string] => [
    `an id ${id} of an added token`,
    { added_tokens: [{ id, content: '<x>' }] },
    `tokenizer.json is not a tokenizer.json of Hugging Face: added_tokens.0.id: expected an integer from 0 to 2147483647, got ${id} for "<x>"`,
  ]),
  [
    'a pattern that is none',
    { pre_tokenizer: { type: 'Split', pattern: { Regex: '(' }, behavior: 'Removed' } },
    expect.stringMatching(/^Oniguruma error: end pattern with unmatched parenthesis/) as unknown as string,
  ],
])('%s is refused by name', (_, parts, message) => {
  const found = () => words(['a'], parts).vocabSize;
  expect(found).toThrow(expect.objectContaining({ name: 'InputError' }));
  let told = '';
  try {
    found();
  } catch (error) {
    told = (error as Error).message;
  }
  expect(told.replace(/^tokenizer\.json: /, '')).toEqual(message);
  expect(told).toMatch(/^tokenizer\.json(: | is not)/);
});

test('a text that a model has no ids for is told with the file', () => {
  const contents = documentOf({ model: { type: 'WordLevel', unk_token: '[UNK]', vocab: { a: 0 } } });
  const tokenizer = build(PretrainedTokenizer.config({ file: 'tokenizer.json', contents }));
  expect(() => tokenizer.encode('b')).toThrow(
    'PretrainedTokenizer: tokenizer.json: WordLevel error: Missing [UNK] token from the vocabulary',
  );
  expect([...tokenizer.encode('a')]).toEqual([0]);
});
