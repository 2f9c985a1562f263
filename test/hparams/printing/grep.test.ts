/** @file Searching configs. */
import { expect, test } from 'vitest';
import { grep } from '../../../src/hparams/index.js';
import { chain, diamond, Inner, Leaf } from '../randomGraphs.js';
import { messageOf } from '../support.js';

const shared = Leaf.config({ value: 3, label: 'Rate' });
const root = Inner.config({ left: shared, right: Inner.config({ left: shared, list: [shared] }) });

test('lines are found by path, by class and by value, under every path of a shared config', () => {
  expect(grep(root, 'value : 3')).toBe('left.value : 3\nright.left.value : 3\nright.list[0].value : 3');
  expect(grep(root, /right.*: Leaf$/)).toBe('right.left : Leaf\nright.list[0] : Leaf');
  expect(grep(root, '^right\\.left\\.value')).toBe('right.left.value : 3');
  expect(grep(root, 'nothing like it')).toBe('');
  expect(grep(7, '7')).toBe('<root> : 7');
});

test('defaults are found, too', () => {
  expect(grep(root, '^value')).toBe('value : 0');
});

test('case counts unless it is said not to', () => {
  expect(grep(root, 'rate')).toBe('');
  expect(grep(root, 'rate', { caseSensitive: false, exclude: 'RIGHT' })).toBe("left.label : 'Rate'");
  expect(grep(root, /rate/i, { exclude: /right/ })).toBe("left.label : 'Rate'");
  expect(grep(root, /rate/i, { caseSensitive: true })).toBe('');
});

test('a pattern with a memory matches each line anew', () => {
  expect(grep(root, /value : 3/g).split('\n').length).toBe(3);
});

test('a pattern that cannot be read is an error', () => {
  expect(messageOf(() => grep(root, '('))).toBe(
    "grep() takes a regular expression, got '(': Invalid regular expression: /(/: Unterminated group.",
  );
  expect(messageOf(() => grep(root, 3 as never))).toBe(
    'grep() takes a regular expression or its text, got 3.',
  );
  expect(messageOf(() => grep(root, 'value', { exclude: null as never }))).toBe(
    'grep() takes a regular expression or its text, got null.',
  );
});

test('of the 2^59 paths to a shared config 16 are given, at others it is the same as the first', () => {
  const lines = grep(diamond(60), /left : same as/).split('\n');
  expect(grep(diamond(60), /^(\w+\.){59}value : 0$/).split('\n')).toHaveLength(16);
  expect(lines.at(-1)).toMatch(/^(right\.)+left : same as (left\.)+left$/);
});

test('the labels of long paths come first', () => {
  const lines = grep(chain(10_000), /value : 9950$/).split('\n');
  expect(lines).toEqual([
    `@1 : ${Array(32).fill('list[0]').join('.')}`,
    `@1.${Array(17).fill('list[0]').join('.')}.value : 9950`,
  ]);
});

test('a config that contains itself is searched', () => {
  const a = Inner.config({ value: 1 });
  const b = Inner.config({ left: a, value: 5 });
  a.right = b;
  expect(grep({ start: a }, 'value : 5')).toBe("['start'].right.value : 5");
});
