/** @file The page of operations says what the compiler's tables say. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { coveragePage } from './coverage.js';
import { root } from './pages.js';

test('docs/guide/operations.md is what `npm run coverage -- --write` writes', () => {
  expect(readFileSync(join(root, 'docs/guide/operations.md'), 'utf8')).toBe(coveragePage());
});
