import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../../src/hparams/index.js';
import { BaseTokenizer, ByteTokenizer, CharTokenizer } from '../../../../src/inputs/index.js';
import {
  type TokenDecoder,
  textAfter,
  WindowDecoder,
} from '../../../../src/inputs/text/vocabularies/tokenDecoders.js';
import { anyText } from '../../corpus.js';

const bytes = build(ByteTokenizer.config());

function pieces(decoder: TokenDecoder, ids: ArrayLike<number>): string[] {
  return [...Array.from(ids, (id) => decoder.take(id)), decoder.rest()];
}

const isHalf = (text: string) => /\p{Surrogate}/u.test(text);

test('the pieces of any text are the text, each of whole characters', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const ids = bytes.encode(text);
      for (const decoder of [bytes.decoder(), new WindowDecoder((some) => bytes.decode(some), [])]) {
        const given = pieces(decoder, ids);
        expect(given.join('')).toBe(text);
        expect(given.some(isHalf)).toBe(false);
      }
    }),
  );
  expect(pieces(bytes.decoder(), [0x61, 0xe2, 0x82, 0xac])).toEqual(['a', '', '', '€', '']);
});

test('bytes that are no character become U+FFFD as in one decoding', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (ids) => {
      expect(pieces(bytes.decoder(), ids).join('')).toBe(bytes.decode(ids));
    }),
  );
  expect(pieces(bytes.decoder(), [0xe2, 0x82])).toEqual(['', '', '\ufffd']);
});

test('a character after bytes that are none is whole, in windows too', () => {
  const ids = [0xff, 0xff, 0xff, 0xff, 0xff, 0xe2, 0x82, 0xac];
  const windows = new WindowDecoder((some) => bytes.decode(some), []);
  expect(pieces(windows, ids).join('')).toBe('\ufffd\ufffd\ufffd\ufffd\ufffd€');
});

test('windows stay small, and keep the context of an id', () => {
  const seen: number[] = [];
  /** Words with a blank between them. */
  const words = new WindowDecoder((ids) => {
    seen.push(ids.length);
    return ids.map(String).join(' ');
  }, []);
  expect(
    pieces(
      words,
      Array.from({ length: 100 }, (_, i) => i),
    ).join(''),
  ).toBe(Array.from({ length: 100 }, (_, i) => i).join(' '));
  expect(Math.max(...seen)).toBe(2);
});

test('a tokenizer of one’s own has a decoder, and unknown ids are errors in each', () => {
  class Digits extends BaseTokenizer.with({}) {
    override get vocabSize() {
      return 10;
    }
    override encode(text: string) {
      return Int32Array.from(text, Number);
    }
    override decode(ids: ArrayLike<number>) {
      return Array.from(ids, String).join('');
    }
    override encodeFile({ bytes }: { bytes: Uint8Array }) {
      return bytes.map((byte) => byte - 48);
    }
  }
  expect(pieces(build(Digits.config()).decoder(), [1, 2, 3])).toEqual(['1', '2', '3', '']);
  expect(() => bytes.decoder().take(256)).toThrow('ByteTokenizer: id 256 at position 0 is not an integer');
  const characters = build(CharTokenizer.config({ vocabulary: 'ab' }));
  expect(pieces(characters.decoder(), [0, 1])).toEqual(['a', 'b', '']);
  expect(() => characters.decoder().take(2)).toThrow('CharTokenizer: id 2');
});

test('ids behind others are decoded as what they add to their text', () => {
  const words = (ids: readonly number[]) => ids.map((id) => `w${id}`).join(' ');
  expect(pieces(new WindowDecoder(words, [1, 2]), [3, 4])).toEqual([' w3', ' w4', '']);
  expect(textAfter('w1 w2', 'w1 w2 w3')).toBe(' w3');
  fc.assert(
    fc.property(anyText, anyText, (before, after) => {
      const [context, ids] = [bytes.encode(before), bytes.encode(after)];
      for (const decoder of [
        bytes.decoder(context),
        new WindowDecoder((some) => bytes.decode(some), context),
      ])
        expect(pieces(decoder, ids).join('')).toBe(bytes.decode(ids));
      expect(textAfter(before, before + after)).toBe(after);
    }),
  );
  // U+FFFD as a character of its own stays whole, whatever is incomplete behind it.
  const replacement = new WindowDecoder((some) => bytes.decode(some), []);
  expect(pieces(replacement, [...bytes.encode('\uFFFD\u{10000}')]).join('')).toBe('\uFFFD\u{10000}');
  // Half a character before the first id is made whole; half a surrogate pair is no text.
  const half = [0x61, 0xe2];
  for (const decoder of [bytes.decoder(half), new WindowDecoder((some) => bytes.decode(some), half)])
    expect(pieces(decoder, [0x82, 0xac]).join('')).toBe('€');
  expect(textAfter('a😀', 'a😁')).toBe('😁');
});
