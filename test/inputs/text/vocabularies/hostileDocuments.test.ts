/** @file Tokenizer files that make the Rust library abort, take all memory or never answer. */
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { PretrainedTokenizer } from '../../../../src/inputs/index.js';
import { documentOf } from './tokenizerDocuments.js';

const model = { type: 'WordLevel', unk_token: '<unk>', vocab: { '<unk>': 0, a: 1 } };
const tokenizerOf = (parts: object) =>
  build(PretrainedTokenizer.config({ file: 'tokenizer.json', contents: documentOf({ model, ...parts }) }));
const split = (Regex: string) => ({
  pre_tokenizer: { type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false },
});
const doubled = { type: 'Replace', pattern: { String: 'a' }, content: 'aa' };

const within = (limit: string, bytes: number) =>
  `PretrainedTokenizer: tokenizer.json: the library 'tokenizers' took more than ${limit} for ${bytes} bytes, and was ended: a pattern of the file may backtrack, or a normalizer expand its text`;

test.each<[string, object, string, string | RegExp]>([
  [
    'a normalizer that grows what it reads',
    { normalizer: { type: 'Sequence', normalizers: Array(40).fill(doubled) } },
    'a',
    /took more than (161 MiB|1\.00002 s of the processor) for 1 bytes, and was ended: a pattern/,
  ],
  [
    'a pattern that backtracks for each character',
    split('(x+x+)+y|z'),
    `${'x'.repeat(20)} `.repeat(300),
    within('1.126 s of the processor', 6300),
  ],
  [
    'a pattern whose search is given up, which aborts',
    split('(x+x+)+y'),
    'x'.repeat(60),
    /^PretrainedTokenizer: tokenizer\.json: the library 'tokenizers' ended with SIGABRT: Onig: Regex search error: retry-limit-in-match over$/,
  ],
])('%s is refused in a line, and the next text is read', (_, parts, text, message) => {
  const hostile = tokenizerOf(parts);
  const whole = tokenizerOf({});
  expect([...whole.encode('a')]).toEqual([1]);
  expect(() => hostile.encode(text)).toThrow(message);
  expect([...whole.encode('a')]).toEqual([1]);
  expect(hostile.vocabSize).toBe(2);
});
