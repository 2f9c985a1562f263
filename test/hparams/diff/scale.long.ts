/** @file Diffs of long, deep and wide graphs. */
import { expect, test } from 'vitest';
import {
  applyDiff,
  buildDiff,
  type Config,
  deepCopy,
  formatDiff,
  isEqual,
} from '../../../src/hparams/index.js';
import { chain, diamond, Inner } from '../randomGraphs.js';

test('long chains, deep diamonds and wide lists', () => {
  const long = chain(10_000);
  const now = deepCopy(long);
  let at: Config<Inner> | undefined = now;
  while (at !== undefined) {
    at.value += 1;
    at = at.list[0] as Config<Inner> | undefined;
  }
  const diff = buildDiff(long, now);
  expect(diff.changes.length).toBe(10_000);
  expect(isEqual(applyDiff(diff, long), now)).toBe(true);
  expect(formatDiff(diff).split('\n').length).toBeLessThan(11_000);
  expect(buildDiff(diamond(60), diamond(60)).changes).toEqual([]);
  expect(formatDiff(buildDiff(diamond(60), diamond(61))).split('\n').length).toBeLessThan(200);
  const items = Array.from({ length: 10_000 }, (_, value) => Inner.config({ value }));
  const wide = Inner.config({ list: items });
  const shuffled = Inner.config({ list: [...items.slice(1).reverse(), Inner.config({ value: -1 })] });
  expect(isEqual(applyDiff(buildDiff(wide, shuffled), wide), shuffled)).toBe(true);
});
