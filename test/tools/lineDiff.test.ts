/** @file What changed between two texts, line by line. */
import { describe, expect, it } from 'vitest';
import { diffText, lineDiff } from '../../src/tools/lineDiff.js';

const letters = [...'abcdefghij'].map((letter) => `${letter}\n`).join('');

describe('lineDiff', () => {
  it('shows what changed with the lines around it, and leaves out the rest', () => {
    expect(diffText(lineDiff(letters, letters.replace('c', 'C').replace('j\n', 'j\nk\n'), 1))).toBe(
      ['@@ -2 +2 @@', ' b', '-c', '+C', ' d', '@@ -10 +10 @@', ' j', '+k'].join('\n'),
    );
  });

  it('joins changes whose surroundings meet', () => {
    const after = letters.replace('c\n', '').replace('f', 'F');
    expect(diffText(lineDiff(letters, after))).toBe(
      ['@@ -1 +1 @@', ' a', ' b', '-c', ' d', ' e', '-f', '+F', ' g', ' h'].join('\n'),
    );
  });

  it('is empty where nothing changed, whatever ends the lines', () => {
    expect(lineDiff(letters, letters)).toEqual([]);
    expect(lineDiff('a\r\nb\r\n', 'a\nb')).toEqual([]);
  });

  it('shows lines that moved as gone and come, and all of what is new', () => {
    expect(diffText(lineDiff('a\nb\nc\n', 'b\nc\na\n', 0))).toBe('@@ -1 +1 @@\n-a\n@@ -4 +3 @@\n+a');
    expect(diffText(lineDiff('', 'a\nb\n'))).toBe('@@ -1 +1 @@\n+a\n+b');
  });

  it('makes the first text into the second', () => {
    const before = 'x a b b c y z b\n'.replaceAll(' ', '\n');
    const after = 'a x b c b b y q z\n'.replaceAll(' ', '\n');
    const lines = lineDiff(before, after, 100);
    const side = (gone: 'added' | 'removed') =>
      lines.flatMap(({ kind, text }) => (kind === gone || kind === 'gap' ? [] : [`${text}\n`])).join('');
    expect(side('added')).toBe(before);
    expect(side('removed')).toBe(after);
  });

  it('is coloured where colours are wanted', () => {
    expect(diffText(lineDiff('a\n', 'b\n'), (style, text) => `<${style}>${text}`)).toBe(
      '<cyan>@@ -1 +1 @@\n<red>-a\n<green>+b',
    );
  });
});
