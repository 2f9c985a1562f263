/** @file Odd files of every kind: read as they are, or refused by name, with row and column. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../command.js';
import { seed, title, tries } from '../../faults/campaign.js';
import { decimalsAndTimes } from './decimalsAndTimes.js';
import { encodings } from './encodings.js';
import { lineEnds } from './lineEnds.js';
import { nesting } from './nesting.js';
import { numberLimits } from './numberLimits.js';
import { check, type OddKind } from './oddFile.js';
import { pictures } from './pictures.js';
import { sounds } from './sounds.js';

const kinds: readonly OddKind[] = [
  lineEnds,
  encodings,
  numberLimits,
  nesting,
  decimalsAndTimes,
  pictures,
  sounds,
];

test.each(kinds.map((kind) => [title(kind.name), kind] as const))('%s', async (_, kind) => {
  const folder = temporaryDirectory();
  await fc.assert(
    fc.asyncProperty(kind.cases, (file) => check(folder, file)),
    { numRuns: tries(kind.tries, kind.short), seed },
  );
});

test('a wrong answer is found', async () => {
  const folder = temporaryDirectory();
  const file = { files: { 'a.txt': 'x' }, read: () => [1], truth: { values: [2] } };
  await expect(check(folder, file)).rejects.toThrow('to deeply equal');
  await expect(check(folder, { ...file, truth: { refused: /row/ } })).rejects.toThrow('to deeply equal');
});
