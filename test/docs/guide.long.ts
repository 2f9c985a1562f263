/** @file Programs and commands of the pages that take longest run, and print what the page shows. */
import { test } from 'vitest';
import { seed, tries } from '../faults/campaign.js';
import { expectShown, longPages } from './shownPages.js';

/** With SHORT=1, one page. */
const every = tries(1, longPages.length);

for (const page of longPages.filter((_, i) => i % every === seed % every))
  test.concurrent(`${page} shows what happens`, () => expectShown(page));
