import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { ByteTokenizer, CharTokenizer, InputError } from '../../src/inputs/index.js';
import { anyText } from './corpus.js';

test('bytes: any text comes back exactly', () => {
  const tokenizer = build(ByteTokenizer.config());
  expect(tokenizer.vocabSize).toBe(256);
  fc.assert(
    fc.property(anyText, (text) => {
      const ids = tokenizer.encode(text);
      expect(ids.every((id) => id >= 0 && id < 256)).toBe(true);
      expect(tokenizer.decode(ids)).toBe(text);
    }),
  );
  expect([...tokenizer.encode('é\ufeff')]).toEqual([0xc3, 0xa9, 0xef, 0xbb, 0xbf]);
});

test('bytes: what is not a whole character shows as U+FFFD', () => {
  expect(build(ByteTokenizer.config()).decode([65, 0xc3, 66])).toBe('A\ufffdB');
});

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

test('ids outside the vocabulary are errors', () => {
  const tokenizer = build(ByteTokenizer.config());
  expect(() => tokenizer.decode([1, 256])).toThrow(
    new InputError('ByteTokenizer: id 256 at position 1 is not an integer from 0 to 255.'),
  );
  expect(() => tokenizer.decode([-1])).toThrow(InputError);
});
