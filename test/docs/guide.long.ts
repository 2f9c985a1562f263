/** @file Programs and commands of the pages that take longest run, and print what the page shows. */
import { test } from 'vitest';
import { expectShown, longPages } from './shownPages.js';

for (const page of longPages) test.concurrent(`${page} shows what happens`, () => expectShown(page));
