/** @file Programs and commands of the pages that take longest run, and print what the page shows. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { publishedModels } from '../publishedModels.js';
import { expectShown, longPages, weightPages } from './shownPages.js';

for (const page of longPages) {
  const { folder, script } = weightPages[page] ?? {};
  const isMissing = folder !== undefined && !existsSync(join(publishedModels, folder));
  const title = isMissing
    ? `${page} (skipped without the weights: bash ${script})`
    : `${page} shows what happens`;
  test.skipIf(isMissing).concurrent(title, () => expectShown(page));
}
