import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { ByteTokenizer, InputError } from '../../../../src/inputs/index.js';
import { anyText } from '../../corpus.js';

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

test('ids outside the vocabulary are errors', () => {
  const tokenizer = build(ByteTokenizer.config());
  expect(() => tokenizer.decode([1, 256])).toThrow(
    new InputError('ByteTokenizer: id 256 at position 1 is not an integer from 0 to 255.'),
  );
  expect(() => tokenizer.decode([-1])).toThrow(InputError);
});
