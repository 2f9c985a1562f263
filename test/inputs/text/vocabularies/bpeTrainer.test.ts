import fc from 'fast-check';
import { expect, test } from 'vitest';
import { trainBpe, WordCounts } from '../../../../src/inputs/text/vocabularies/bpeTrainer.js';
import { trainedJson } from './trainedBpe.js';

const mergesOf = (documents: readonly string[], vocabSize: number): string[][] =>
  JSON.parse(trainedJson(documents, vocabSize)).model.merges;

/** Merges as the definition has them: all pairs are counted anew for each. */
function plainMerges(documents: readonly string[], count: number): string[][] {
  const words = documents
    .flatMap((text) => text.match(/ ?[a-z]+/g) ?? [])
    .map((word) => [...word.replace(' ', 'Ġ')]);
  // Ids by age: bytes in the order of their characters, then merged tokens.
  const order = [...'abcdefghijklmnopqrstuvwxyz', 'Ġ'];
  const merges = [];
  while (merges.length < count) {
    const counts = new Map<string, number>();
    for (const word of words)
      for (let i = 0; i + 1 < word.length; i++) {
        const pair = `${word[i]} ${word[i + 1]}`;
        counts.set(pair, (counts.get(pair) ?? 0) + 1);
      }
    const place = (pair: string) => pair.split(' ').map((token) => order.indexOf(token));
    const [best] = [...counts]
      .filter(([, times]) => times > 1)
      .sort(([a, m], [b, n]) => {
        const [p, q] = [place(a), place(b)];
        return n - m || p[0]! - q[0]! || p[1]! - q[1]!;
      });
    if (best === undefined) break;
    const [left, right] = best[0].split(' ') as [string, string];
    merges.push([left, right]);
    if (!order.includes(left + right)) order.push(left + right);
    for (const word of words)
      for (let i = 0; i + 1 < word.length; i++)
        if (word[i] === left && word[i + 1] === right) word.splice(i, 2, left + right);
  }
  return merges;
}

test('each merge joins the most frequent pair, of equal ones that with the smallest ids', () => {
  expect(mergesOf(['ab ab ab bc bc'], 256 + 2)).toEqual([
    ['a', 'b'],
    ['b', 'c'],
  ]);
  // Without a letter twice in a row, which leaves counts of overlapping pairs to the order of merging.
  const word = fc
    .uniqueArray(fc.constantFrom(...'abcde'), { minLength: 1 })
    .map((letters) => letters.join(''));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 30 }), (words) => {
      const text = words.join(' ');
      const expected = plainMerges([text], 12);
      expect(mergesOf([text], 256 + expected.length)).toEqual(expected);
    }),
  );
});

test('the order of documents and other runs give the same merges; rare pairs are left', () => {
  const documents = ['let value = 1;', 'let values = [value, value];', 'const lets = 1;'];
  const merges = mergesOf(documents, 300);
  expect(merges.length).toBeGreaterThan(5);
  expect(mergesOf([...documents].reverse(), 300)).toEqual(merges);
  expect(mergesOf(['ab'], 300)).toEqual([]);
  const corpus = new WordCounts();
  expect(trainBpe(corpus, { firstId: 0, vocabSize: 300, minFrequency: 1 })).toEqual([]);
});
