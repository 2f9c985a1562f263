/** @file Text of bytes: any text, and the place of the first bytes that are none. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteOf, utf8Text } from '../../../src/inputs/text/utf8.js';

const inFile = byteOf('/data/a.txt');
const text = fc.string({ unit: 'binary', maxLength: 8 });
/** Bytes that begin no character, or not all of one: Latin-1, an overlong slash, a surrogate, the end of a character, beyond Unicode. */
const invalid = fc.constantFrom(
  [0xe9, 0x20],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf0, 0x9f, 0x98],
  [0x80],
  [0xf5, 0x80],
);

test('a text comes back, its byte order mark too; bytes that are no text are told by their place', () => {
  fc.assert(
    fc.property(text, invalid, text, (before, bytes, after) => {
      const valid = Buffer.from(`\uFEFF${before}`);
      expect(utf8Text(valid, inFile)).toBe(`\uFEFF${before}`);
      const damaged = Buffer.concat([valid, Uint8Array.from(bytes), Buffer.from(` ${after}`)]);
      expect(() => utf8Text(damaged, inFile, ' Mend it.')).toThrow(
        `/data/a.txt, byte ${valid.length}: the text is not UTF-8. Mend it.`,
      );
    }),
  );
});
