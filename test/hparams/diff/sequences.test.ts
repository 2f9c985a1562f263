/** @file Numbers of sequences: the same for equal ones only, also where one is begun within another. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Sequences } from '../../../src/hparams/diff/sequences.js';

function number(sequences: Sequences, words: readonly number[]): number {
  const from = sequences.begin();
  for (const word of words) sequences.push(word);
  return sequences.end(from);
}

test('equal sequences have one number, others another, in the order in which they came', () => {
  const few = fc.array(fc.constantFrom(0, 1, -1, 2 ** 31 - 1, -(2 ** 31)), { maxLength: 4 });
  fc.assert(
    fc.property(fc.array(fc.oneof(few, fc.array(fc.integer())), { maxLength: 60 }), (all) => {
      const sequences = new Sequences();
      const known = new Map<string, number>();
      for (const words of all) {
        const key = words.join(' ');
        if (!known.has(key)) known.set(key, known.size);
        expect(number(sequences, words)).toBe(known.get(key));
      }
      expect(sequences.count).toBe(known.size);
    }),
    { seed: 7 },
  );
});

test('one that is begun within another leaves that as it was', () => {
  const sequences = new Sequences();
  const plain = number(sequences, [1, 2, 3]);
  const outer = sequences.begin();
  sequences.push(1);
  sequences.push(2);
  expect(number(sequences, [9])).not.toBe(plain);
  sequences.push(3);
  expect(sequences.end(outer)).toBe(plain);
});

test('tells many sequences apart, long and short', () => {
  const sequences = new Sequences();
  const words = (i: number) => Array.from({ length: 300 }, (_, k) => (k === 150 ? i : k));
  for (let i = 0; i < 2000; i++) number(sequences, words(i));
  for (let i = 0; i < 100_000; i++) number(sequences, [i, i >> 3]);
  expect(sequences.count).toBe(102_000);
  expect(number(sequences, words(1234))).toBe(1234);
  expect(number(sequences, [77_777, 77_777 >> 3])).toBe(2000 + 77_777);
});
