/** @file Programs and commands in the guide, the README and docs/architecture run, and print what the page shows. */
import { expect, test } from 'vitest';
import { compilePages } from './pages.js';
import { expectShown, longPages, pages } from './shownPages.js';

test('the pages that take long are pages', () => {
  expect(longPages.filter((page) => !pages.includes(page))).toEqual([]);
});

for (const page of pages.filter((name) => !longPages.includes(name))) {
  test.concurrent(`${page} shows what happens`, () => expectShown(page));
}

test.concurrent('what the pages show compiles, and what they say does not compile does not', {
  timeout: 300_000,
}, async () => {
  expect(compilePages(pages)).toBe('');
});
