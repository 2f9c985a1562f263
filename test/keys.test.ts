/** @file The list of keys is whole: what makes a key in `src` is listed, with a test, or known to be none. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { expect, it } from 'vitest';
import { KEYS, NO_KEYS } from './keyList.js';

const src = fileURLToPath(new URL('../src/', import.meta.url));
const own = fileURLToPath(new URL('.', import.meta.url));
const sourceOf = (file: string): string => readFileSync(`${src}${file}`, 'utf8');

/** Lines that make a key: texts of several values, digests, comparisons, memos by object, files of caches. */
const SITES =
  /createHash\(|hostConstant\(|[kK]ey = (`|JSON\.stringify|String\()|(signature|kind) = (`|JSON\.stringify)|\.(get|has|set)\((`|JSON\.stringify)|(const|function) same[A-Z]\w*|function \w*Key(Of)?\(|function keyOf|new Shared<|new WeakMap<|new KeptPrograms|(cachedFile|keptFile|cache\.entry)\(/;

const keys = Object.entries(KEYS).flatMap(([test, rows]) =>
  Object.entries(rows).map(([name, row]) => ({ test, name, row: row as readonly string[] })),
);
const listed: readonly (readonly string[])[] = [
  ...keys.map(({ row }) => row),
  ...Object.values(NO_KEYS).flat(),
];

it('every line that makes a key is listed', () => {
  const missing = globSync('**/*.ts', { cwd: src, ignore: ['editor/**'] }).flatMap((file) => {
    const texts = listed.filter(([of]) => of === file).map(([, text]) => text!);
    return sourceOf(file)
      .split('\n')
      .filter((line) => SITES.test(line) && !/^\s*(\*|\/\/|import|\/\*)/.test(line))
      .filter((line) => !texts.some((text) => line.includes(text)))
      .map((line) => `${file}: ${line.trim()}`);
  });
  expect(missing.sort()).toEqual([]);
});

it('what is listed is there', () => {
  expect(
    listed.filter(([file, text]) => !existsSync(`${src}${file}`) || !sourceOf(file!).includes(text!)),
  ).toEqual([]);
});

it('the test of each key names it, or has the title of the list', () => {
  const stale = keys.filter(({ test, name, row: [, , , title = `'${name}'`] }) => {
    return !existsSync(`${own}${test}`) || !readFileSync(`${own}${test}`, 'utf8').includes(title);
  });
  expect(stale).toEqual([]);
});
