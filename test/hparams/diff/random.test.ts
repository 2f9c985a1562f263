/** @file Random pairs of graphs: a diff makes one of the other, with the same sharing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyDiff } from '../../../src/hparams/diff/apply.js';
import { buildDiff } from '../../../src/hparams/diff/buildDiff.js';
import { isEqual, print } from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { pairs } from './edits.js';

test('the diff of two graphs, applied to the first, gives the second with the same sharing', () => {
  fc.assert(
    fc.property(pairs, ([old, now]) => {
      const before = print(old);
      const made = applyDiff<unknown>(buildDiff(old, now), old);
      expect(isEqual(made, now, { tags: true })).toBe(true);
      expect(print(old)).toBe(before);
    }),
    { numRuns: runs(1000) },
  );
});
