/** @file Suites that take turns. */
import { expect, test } from 'vitest';
import { inTurn } from './inTurn.js';

const suites = ['b', 'd', 'a', 'c', 'a', 'e'];

test('two turns in a row have each suite once; without one, a run has all', () => {
  expect(inTurn(suites, '6')).toEqual(['a', 'c', 'e']);
  expect(inTurn(suites, '7')).toEqual(['b', 'd']);
  for (const none of [undefined, '']) expect(inTurn(suites, none)).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('what is no number is refused, for it would leave out all', () => {
  expect(() => inTurn(suites, 'next')).toThrow('TURN=next: a whole number is needed, such as 0 or 1.');
});
