/** @file Mutations that StrykerJS lacks. */
import { expect, test } from 'vitest';
import { slipsIn } from './slips.js';

/** The texts that a kind of slip makes of a file. */
const made = (kind: string, content: string): string[] =>
  slipsIn('file.ts', content)
    .filter((change) => change.kind === kind)
    .map(({ start, end, replacement }) => content.slice(0, start) + replacement + content.slice(end));

test.each([
  ['DroppedCall', 'sync(file); a = 1;', ['; a = 1;']],
  ['DroppedCall', 'async () => { await sync(file); }', ['async () => { ; }']],
  ['DroppedCall', 'class A extends B { constructor() { super(1); } }', []],
  ['SwappedCalls', '{ sync(file); rename(file); x = 1; }', ['{ rename(file); sync(file); x = 1; }']],
  ['SwappedCalls', '{ step(); step(); }', []],
  ['DroppedItem', 'key = [a, b, c]', ['key = [b, c]', 'key = [a, c]', 'key = [a, b]']],
  ['DroppedItem', 'key = [a]', []],
  ['DroppedItem', 'key = { a, ...b }', ['key = { ...b }', 'key = { a }']],
  ['DroppedItem', 'key = { a }', ['key = {  }']],
  ['DroppedItem', 'pack(matrix, precision)', ['pack(matrix)']],
  ['DroppedHole', 'key = `\u0024{a}:\u0024{b} c`', ['key = `:\u0024{b} c`', 'key = `\u0024{a}: c`']],
  ['SwappedArguments', 'slice(begin, size, 3)', ['slice(size, begin, 3)']],
  ['NextNumber', 'a < 3 || b < 0.5', ['a < 4 || b < 0.5']],
  ['DefaultOfFalsy', 'step ?? 10', ['step || 10']],
])('%s in %s', (kind, content, expected) => {
  expect(made(kind, content)).toEqual(expected);
});

test('types, interfaces and imports have none', () => {
  expect(slipsIn('file.ts', "import { a } from 'b';\ntype A = [B, C, 3];\ninterface D { e: 4 }")).toEqual([]);
});
