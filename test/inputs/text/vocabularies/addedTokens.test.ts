/** @file Tokens that are found before a text is split: the leftmost, of those the longest; many with the same beginning. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AddedTokens } from '../../../../src/inputs/text/vocabularies/addedTokens.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const tokensOf = (texts: readonly string[]) =>
  new AddedTokens(texts.map((text, id) => ({ id, bytes: bytesOf(text), isText: id % 4 === 3 })));

test('tokens are found as a regular expression of all of them does, long ones first', () => {
  const letters = fc.constantFrom('a', 'b', 'c');
  const token = fc.string({ unit: letters, minLength: 1, maxLength: 4 });
  const text = fc.string({ unit: letters, maxLength: 30 });
  fc.assert(
    fc.property(fc.uniqueArray(token, { minLength: 1, maxLength: 6 }), text, (texts, some) => {
      const any = new RegExp([...texts].sort((a, b) => b.length - a.length).join('|'), 'g');
      const wanted = [...some.matchAll(any)]
        .map(({ 0: found, index }) => ({ at: index, end: index + found.length, id: texts.indexOf(found) }))
        .filter(({ id }) => id % 4 !== 3);
      expect([...tokensOf(texts).in(bytesOf(some))]).toEqual(wanted);
    }),
  );
});

test('twenty thousand tokens with the same beginning take no longer than one', () => {
  const many = tokensOf(Array.from({ length: 20_000 }, (_, i) => `aaaa${i}`));
  expect([...many.in(bytesOf(`${'a'.repeat(20_000)}4`))]).toEqual([{ at: 19_996, end: 20_001, id: 4 }]);
});
