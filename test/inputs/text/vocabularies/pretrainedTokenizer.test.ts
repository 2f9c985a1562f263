import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import {
  nextBatch,
  openInput,
  PretrainedTokenizer,
  TextInput,
  withRecorded,
} from '../../../../src/inputs/index.js';
import { anyText, corpusDirectory } from '../../corpus.js';
import { prose, trainedJson } from './trainedBpe.js';

const END = '<|end|>';
const contents = trainedJson([prose], 320, [END, '<|end|>x', '<pad>']);
const directory = corpusDirectory({ 'tokenizer.json': contents, 'a.txt': prose });
const file = join(directory, 'tokenizer.json');
const open = (values: object = {}) => build(PretrainedTokenizer.config({ file, ...values }));

/** A vocabulary of another kind, which the Rust library of Hugging Face reads. */
const unigram = JSON.stringify({
  version: '1.0',
  added_tokens: [{ id: 0, content: '<unk>', special: true }],
  normalizer: null,
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  model: {
    type: 'Unigram',
    unk_id: 0,
    vocab: [
      ['<unk>', 0],
      ['▁', -3],
      ['▁the', -2],
      ['re', -2.5],
      ['t', -4],
      ['h', -4],
      ['e', -4],
      ['r', -4],
    ],
  },
});

test('texts and bytes of any kind come back, with special tokens in them', () => {
  const tokenizer = open();
  const utf8 = new TextEncoder();
  const parts = fc.array(
    fc.oneof(anyText, fc.constantFrom(END, '<|end', '<|end|>x', ' string', '  ', "'s", 'Größe')),
  );
  fc.assert(
    fc.property(parts, (some) => {
      const text = some.join('');
      const ids = tokenizer.encode(text);
      expect(tokenizer.decode(ids)).toBe(text);
      const decoder = tokenizer.decoder();
      expect([...Array.from(ids, (id) => decoder.take(id)), decoder.rest()].join('')).toBe(text);
      expect([...tokenizer.encodeFile({ path: '', name: '', bytes: utf8.encode(text) })]).toEqual([...ids]);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const ids = tokenizer.encodeFile({ path: '', name: '', bytes });
      expect(tokenizer.decode(ids)).toBe(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
    }),
  );
  expect(tokenizer.encode('')).toEqual(new Int32Array());
  expect(tokenizer.decode(tokenizer.encode('a\ud800b'))).toBe('a\ufffdb');
});

test('the longest special token is found; what is learned takes fewer tokens', () => {
  const tokenizer = open();
  expect([...tokenizer.encode(`${END}x${END}`)]).toEqual([1, 0]);
  expect(tokenizer.encode(prose).length).toBeLessThan(prose.length / 3);
  expect(tokenizer.vocabSize).toBe(320);
});

test('a word of megabytes is merged as a short one', () => {
  const tokenizer = open();
  const once = [...tokenizer.encode('readonly')];
  const ids = tokenizer.encode('readonly'.repeat(200_000));
  expect(tokenizer.decode(ids)).toBe('readonly'.repeat(200_000));
  expect(ids.length).toBeLessThanOrEqual(once.length * 200_000);
  // Words above and below the length from which there is a queue.
  for (const times of [4, 5, 6, 7, 8, 9]) {
    const long = tokenizer.encode('namestri'.repeat(times));
    expect([...tokenizer.encode('namestri'.repeat(20)).subarray(0, long.length - 4)]).toEqual([
      ...long.subarray(0, -4),
    ]);
  }
});

test('roles of tokens are named by the config', () => {
  const tokenizer = open({ eosToken: END, padToken: '<pad>' });
  expect([tokenizer.eosId, tokenizer.padId, tokenizer.bosId, tokenizer.unkId]).toEqual([0, 2, null, null]);
  expect(() => open({ bosToken: '<s>' }).bosId).toThrow(
    `PretrainedTokenizer: bosToken '<s>' is not a token of ${file}. Its special tokens: <|end|>, <|end|>x, <pad>.`,
  );
});

test('special tokens as text: no text can hold one, and all texts come back', () => {
  const plain = open({ specialTokensAsText: true });
  const parts = fc.array(fc.oneof(anyText, fc.constantFrom(END, '<|end|>x', '<pad>', '<|end', '<|', '|>')));
  fc.assert(
    fc.property(parts, (some) => {
      const text = some.join('');
      const ids = plain.encode(text);
      expect(Math.min(3, ...ids)).toBe(3);
      expect(plain.decode(ids)).toBe(text);
    }),
  );
  expect(plain.decode([0, ...plain.encode(END)])).toBe(END + END);
  expect(plain.identity()).toMatch(
    /^PretrainedTokenizer of 320 tokens \(sha256 \w{16}, special tokens as text\)$/,
  );
  // What is no special token is found all the same; where merges make one, they don't.
  const document = JSON.parse(contents);
  document.added_tokens[2].special = false;
  const [left, right] = document.model.merges.at(-1);
  document.added_tokens.push({ id: 319, content: left + right, special: true });
  const some = open({ contents: JSON.stringify(document), specialTokensAsText: true });
  expect([...some.encode('<pad>')]).toEqual([2]);
  expect([...open({ contents }).encode(prose)]).toContain(319);
  expect([...some.encode(prose)]).not.toContain(319);
});

test('special tokens as text in other models, whose vocabularies have them as pieces', () => {
  const document = JSON.parse(unigram);
  document.added_tokens.push({ id: 2, content: '▁the', special: true });
  const encode = (values: object, text: string) => [
    ...open({ contents: JSON.stringify(document), ...values }).encode(text),
  ];
  expect(encode({}, '▁there')).toEqual([2, 1, 3]);
  expect(encode({ specialTokensAsText: true }, '▁there')).toEqual([1, 4, 5, 6, 3]);
  expect(encode({ specialTokensAsText: true }, 'x<unk>')).not.toContain(2);
  const words = JSON.stringify({
    added_tokens: [
      { id: 0, content: '[UNK]', special: true },
      { id: 3, content: '[SEP]', special: true },
    ],
    pre_tokenizer: { type: 'WhitespaceSplit' },
    model: {
      ...{ type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##' },
      vocab: { '[UNK]': 0, a: 1, '##b': 2, '[SEP]': 3, '[': 4, '##S': 5, '##E': 6, '##P': 7, '##]': 8 },
    },
  });
  const wordPiece = open({ contents: words, specialTokensAsText: true });
  expect([...wordPiece.encode('ab [SEP] z')]).toEqual([1, 2, 4, 5, 6, 7, 8, 0]);
  expect([...open({ contents: words }).encode('ab [SEP] z')]).toEqual([1, 2, 3, 0]);
  expect(wordPiece.decode([1, 3])).toContain('[SEP]');
});

test('other models are read by the Rust library of Hugging Face', () => {
  const tokenizer = open({ contents: unigram });
  expect(tokenizer.vocabSize).toBe(8);
  expect(tokenizer.unkId).toBe(0);
  expect([...tokenizer.encode('there the')]).toEqual([2, 3, 2]);
  expect(tokenizer.decode([2, 3, 2])).toBe('there the');
  const decoder = tokenizer.decoder();
  expect([2, 3, 2].map((id) => decoder.take(id))).toEqual(['the', 're', ' the']);
  expect(tokenizer.encode('')).toEqual(new Int32Array());
  // Pieces go up to a space, so a text may be of any length.
  const long = tokenizer.encode('there '.repeat(50_000));
  expect([long.length, ...long.subarray(0, 4)]).toEqual([100_001, 2, 3, 2, 3]);
  const bert = JSON.stringify({
    added_tokens: [],
    normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    model: {
      ...{ type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##' },
      vocab: { '[UNK]': 0, a: 1, 𠀀: 2, 漢: 3 },
    },
  });
  expect([...open({ contents: bert }).encode('A𠀀a漢')]).toEqual([1, 2, 1, 3]);
});

test('a run keeps the file’s contents: later it may be gone or another', async () => {
  const source = join(corpusDirectory({ 'tokenizer.json': contents }), 'tokenizer.json');
  const tokenizer = PretrainedTokenizer.config({ file: source });
  const config = TextInput.config({
    ...{ files: [join(directory, 'a.txt')], tokenizer, seqLen: 16, batchSize: 2, isTraining: true },
  });
  const input = build(config);
  const identity = input.dataIdentity();
  expect(identity.vocabSize).toBe(320);
  expect(identity.tokenizer!.identity).toMatch(/^PretrainedTokenizer of 320 tokens \(sha256 [0-9a-f]{16}\)$/);
  const first = await nextBatch(input);
  rmSync(source);
  const saved = JSON.parse(JSON.stringify(identity));
  const later = openInput(withRecorded(config, saved));
  expect(await nextBatch(later)).toEqual(first);
  await later.close();
  expect(() => build(config).dataIdentity()).toThrow(`No file matches '${source}'`);
});

test('what is no tokenizer.json, and ids that it has not', () => {
  expect(() => open({ contents: '{' }).vocabSize).toThrow(
    `${file} is not a tokenizer.json of Hugging Face: `,
  );
  expect(() => open({ contents: '{"model": 1}' }).vocabSize).toThrow(
    `${file} is not a tokenizer.json of Hugging Face: model: Invalid input: expected object, received number`,
  );
  const deep = `{"model": {"vocab": ${'['.repeat(1e5)}${']'.repeat(1e5)}}}`;
  expect(() => open({ contents: deep }).vocabSize).toThrow(
    `${file} is not a tokenizer.json of Hugging Face: it is nested more than 100 deep`,
  );
  expect(() => open({ contents: '{"model": {"type": "Magic"}}' }).vocabSize).toThrow(
    `${file}: model: type 'Magic' is not known. The types are: BPE, WordPiece, WordLevel, Unigram.`,
  );
  expect(() => open().decode([320])).toThrow(
    'PretrainedTokenizer: id 320 at position 0 is not an integer from 0 to 319.',
  );
  expect(() => open().decoder().take(-1)).toThrow('PretrainedTokenizer: id -1');
});
