/** @file Pages of prompts: which are found, which are forgotten, and that they hold a state's places. */
import { expect, test } from 'vitest';
import { DecodeState } from '../../src/decoding/decodeState.js';
import { PrefixPages } from '../../src/decoding/prefixPages.js';

const PLACES = 8;
// Two layers that are stacked, of one row with two heads, whose tokens have one number.
const spec = { shape: [2, 1, 2, PLACES, 1], dtype: 'float32', rowAxis: 1, isPerToken: true } as const;
const stateOf = (value: (index: number) => number): DecodeState =>
  new DecodeState({ key: spec }, { key: Float32Array.from({ length: 4 * PLACES }, (_, i) => value(i)) });

/** Pages of two tokens: takes those that are there, and keeps others. @returns the places that were taken */
function fill(pages: PrefixPages, tokens: readonly number[], state = stateOf((i) => i)): number[] {
  const paged = pages.begin(Int32Array.from(tokens));
  const taken: number[] = [];
  for (let begin = 0; begin < tokens.length; begin += 2)
    if (paged.take(state, begin)) taken.push(begin);
    else paged.keep(state, begin);
  paged.end();
  return taken;
}

test('pages are found by their tokens and all before them', () => {
  const pages = new PrefixPages(8, 2);
  expect(fill(pages, [1, 2, 3, 4, 5, 6])).toEqual([]);
  expect(fill(pages, [1, 2, 3, 4, 7, 8])).toEqual([0, 2]);
  expect(fill(pages, [9, 9, 3, 4])).toEqual([]);
  expect(pages.count).toBe(6);
  pages.clear();
  expect(fill(pages, [1, 2])).toEqual([]);
});

test('the oldest are forgotten, the last of a prompt before its first', () => {
  const pages = new PrefixPages(3, 2);
  fill(pages, [1, 2, 3, 4]);
  fill(pages, [5, 6, 7, 8]);
  expect(pages.count).toBe(3);
  expect(fill(pages, [1, 2, 3, 4])).toEqual([0]);
  // Of a prompt that is too long the first are kept, and nothing behind a gap is found.
  expect(fill(pages, [1, 1, 2, 2, 3, 3, 4, 4])).toEqual([]);
  expect(fill(pages, [1, 1, 2, 2, 3, 3, 4, 4])).toEqual([0, 2, 4]);
  expect(pages.count).toBe(3);
});

test('a page has what each layer and head holds of its tokens', () => {
  const pages = new PrefixPages(8, 2);
  fill(pages, [1, 2, 3, 4]);
  const other = stateOf(() => -1);
  expect(fill(pages, [1, 2, 3, 4], other)).toEqual([0, 2]);
  const expected = Array.from({ length: 4 * PLACES }, (_, i) => (i % PLACES < 4 ? i : -1));
  expect([...other.arrays.key!]).toEqual(expected);
});
