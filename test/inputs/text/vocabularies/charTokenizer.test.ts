import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { CharTokenizer } from '../../../../src/inputs/index.js';

test('characters: a given vocabulary numbers them in its order, and text comes back exactly', () => {
  const tokenizer = build(CharTokenizer.config({ vocabulary: 'ba😀\n' }));
  expect(tokenizer.vocabSize).toBe(4);
  expect([...tokenizer.encode('ab\n😀')]).toEqual([1, 0, 3, 2]);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'b', '😀', '\n') }), (text) => {
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }),
  );
});

test('characters: without a vocabulary, with one twice, and outside it', () => {
  expect(() => build(CharTokenizer.config()).encode('a')).toThrow(
    'CharTokenizer: it has no vocabulary yet. Give it one (vocabulary: charVocabularyOf(files)), or let an input read a corpus with it.',
  );
  expect(() => build(CharTokenizer.config({ vocabulary: 'aba' }))).toThrow(
    'CharTokenizer: its vocabulary has "a" twice.',
  );
  expect(() => build(CharTokenizer.config({ vocabulary: 'ab' })).encode('ac')).toThrow(
    'CharTokenizer: the character "c" (U+0063) at line 1, column 2 of the text is not among the 2 characters of its vocabulary.',
  );
});
