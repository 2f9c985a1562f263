/** @file Texts of unknown origin: on one line, as they are, and of a bounded length. */
import { expect, test } from 'vitest';
import { shortened, visible, visibleLines } from '../../../src/system/text/visibleText.js';

test('what controls or turns text is written out', () => {
  expect(visible('a\tb\u202ec\n\ud800')).toBe('a\\u0009b\\u202ec\\u000a\\ud800');
  expect(visibleLines('a\nb\r')).toBe('a\nb\\u000d');
});

test('a text longer than the most loses its middle', () => {
  expect(['12345', '123456', '1234567'].map((text) => shortened(text, 6))).toEqual([
    '12345',
    '123456',
    '12…67',
  ]);
  expect(shortened('x'.repeat(160))).toBe('x'.repeat(160));
  expect(shortened('x'.repeat(161))).toBe(`${'x'.repeat(79)}…${'x'.repeat(79)}`);
});
