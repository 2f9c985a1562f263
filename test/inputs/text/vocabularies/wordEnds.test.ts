import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wordEnd } from '../../../../src/inputs/text/vocabularies/wordEnds.js';
import { anyText } from '../../corpus.js';

const SPACE = '\\p{White_Space}';
/** GPT-2's pattern, with Unicode's white space. */
const gpt2 = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|${SPACE}+(?!\\P{White_Space})|${SPACE}+`,
  'gu',
);

function wordsOf(bytes: Uint8Array): string[] {
  const words = [];
  for (let at = 0; at < bytes.length; ) {
    const end = wordEnd(bytes, at, bytes.length);
    words.push(Buffer.from(bytes.subarray(at, end)).toString());
    at = end;
  }
  return words;
}

const utf8 = (text: string) => new TextEncoder().encode(text);

test('words are those of GPT-2’s pattern', () => {
  const unit = fc.oneof(
    fc.constantFrom(
      ' ',
      ' ',
      '\n',
      '\t',
      "'",
      "'s",
      "'ll",
      "'re",
      'a',
      'Z',
      '7',
      '.',
      '{',
      '\u0085',
      '\ufeff',
    ),
    fc.constantFrom('é', '漢', '٣', '\u3000', '\u00a0', '😀', '\u0301', '𝔘', '½'),
  );
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit, maxLength: 40 }), anyText), (text) => {
      expect(wordsOf(utf8(text))).toEqual(text.match(gpt2) ?? []);
    }),
    { numRuns: 2000 },
  );
  expect(wordsOf(utf8("I'll  go\n\n  now 12 !"))).toEqual([
    'I',
    "'ll",
    ' ',
    ' go',
    '\n\n ',
    ' now',
    ' 12',
    ' !',
  ]);
});

test('bytes that are no character are words beside letters', () => {
  expect(wordsOf(Uint8Array.of(0x61, 0xff, 0xe2, 0x82, 0x62))).toEqual(['a', '\ufffd\ufffd', 'b']);
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      let at = 0;
      while (at < bytes.length) {
        const end = wordEnd(bytes, at, bytes.length);
        expect(end).toBeGreaterThan(at);
        at = end;
      }
      expect(at).toBe(bytes.length);
    }),
  );
});
