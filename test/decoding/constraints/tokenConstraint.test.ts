/** @file Bits of tokens applied to rows of logits and of numbers. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allowedLogits, isAllowed, writeAllowed } from '../../../src/decoding/constraints/index.js';

/** Words of bits for so many tokens; none, all, and mixed words are equally likely. */
const rows = fc.integer({ min: 1, max: 200 }).chain((size) => {
  const words = Math.ceil(size / 32);
  const word = fc.oneof(fc.constant(0), fc.constant(0xffffffff), fc.nat(0xffffffff));
  return fc.tuple(fc.constant(size), fc.array(word, { minLength: words, maxLength: words }));
});

test('a row keeps the logits of its allowed tokens, and has no other', () => {
  const row = fc.property(rows, ([size, words]) => {
    const allowed = Uint32Array.from(words);
    const logits = Float32Array.from({ length: size }, (_, id) => id - 3);
    const expected = logits.map((logit, id) => (isAllowed(allowed, id) ? logit : Number.NEGATIVE_INFINITY));
    expect(allowedLogits(logits, allowed)).toEqual(expected);
    expect(logits[0]).toBe(-3);
  });
  fc.assert(row);
});

test('a row of a program has 1 for each allowed token, and leaves its neighbors alone', () => {
  const row = fc.property(rows, ([size, words]) => {
    const allowed = Uint32Array.from(words);
    const to = new Int32Array(3 * size).fill(7);
    writeAllowed(to, size, size, allowed);
    const own = Array.from({ length: size }, (_, id) => Number(isAllowed(allowed, id)));
    expect([...to]).toEqual([...Array(size).fill(7), ...own, ...Array(size).fill(7)]);
    writeAllowed(to, 0, size, undefined);
    expect([...to.subarray(0, size)]).toEqual(Array(size).fill(1));
  });
  fc.assert(row);
});
