/** @file Mutants of files of every kind: read right, or refused by name, in bounded time and memory. */
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../command.js';
import { isShort, seed, title, tries } from '../../faults/campaign.js';
import { broken } from './broken.js';
import { kinds } from './kinds.js';
import { problemsAmong } from './mutantProcess.js';

test.each(kinds.map((kind) => [title(kind.name), kind] as const))('%s', async (_, kind) => {
  const folder = temporaryDirectory();
  expect(await problemsAmong(kind, folder, seed, tries(kind.tries, kind.short))).toEqual([]);
});

// It hangs and dies on purpose, which takes a while.
test.skipIf(isShort)(
  'readers that are wrong, quote V8, hide the file, hang, grow or die are found',
  async () => {
    const found = await problemsAmong(broken, temporaryDirectory(), seed, broken.tries);
    for (const pattern of [
      /^\d+ a\.txt: count 5 → -1: it is refused by RangeError: Invalid typed array/,
      /^\d+ a\.txt: count 5 → 0: it has taken [\d.]+ s, and was ended$/,
      /^\d+ a\.txt: count 5 → 10: the file is not named: broken$/,
      /^\d+ a\.txt: count 5 → 100000000: it takes \d{3} MB$/,
      /^\d+ a\.txt: count 5 → 2147483647: it was ended by SIGABRT: /,
      /^\d+ a\.txt: count 5 → 4: it is read as 6$/,
      /^\d+ a\.txt: count 5 → 6: the message has lines: /,
    ])
      expect(found).toContainEqual(expect.stringMatching(pattern));
    expect(found.filter((problem) => problem.includes('2147483648'))).toEqual([]);
  },
);
