/** @file Random pairs of graphs: a diff makes one of the other, with the same sharing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { applyDiff } from '../../../src/hparams/diff/apply.js';
import { buildDiff } from '../../../src/hparams/diff/build.js';
import { diffFromJSON, diffToJSON } from '../../../src/hparams/diff/diffJson.js';
import { invertDiff } from '../../../src/hparams/diff/invert.js';
import { mergeConfigs } from '../../../src/hparams/diff/merge.js';
import { isEqual, print } from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { pairs } from './edits.js';

const tries = { numRuns: runs(1000) };

test('the diff of two graphs, applied to the first, gives the second with the same sharing', () => {
  fc.assert(
    fc.property(pairs, ([old, now]) => {
      const before = print(old);
      const made = applyDiff<unknown>(buildDiff(old, now), old);
      expect(isEqual(made, now, { tags: true })).toBe(true);
      expect(print(old)).toBe(before);
    }),
    tries,
  );
});

test('an inverted diff makes the first graph of the second', () => {
  fc.assert(
    fc.property(pairs, ([old, now]) => {
      const diff = buildDiff(old, now);
      const made = applyDiff<unknown>(diff, old);
      const inverse = invertDiff(diff);
      expect(isEqual(applyDiff<unknown>(inverse, made), old, { tags: true })).toBe(true);
      expect(isEqual(applyDiff<unknown>(invertDiff(inverse), old), now, { tags: true })).toBe(true);
    }),
    tries,
  );
});

test('a diff that went through JSON does the same, forth and back', () => {
  fc.assert(
    fc.property(pairs, ([old, now]) => {
      const diff = diffFromJSON(JSON.stringify(diffToJSON(buildDiff(old, now))));
      const made = applyDiff<unknown>(diff, old);
      expect(isEqual(made, now, { tags: true })).toBe(true);
      expect(isEqual(applyDiff<unknown>(invertDiff(diff), made), old, { tags: true })).toBe(true);
    }),
    tries,
  );
});

test('a merge with what did not change is the other, two equal edits are one, and disjoint edits are both made', () => {
  fc.assert(
    fc.property(pairs, pairs, ([base, ours], [other, theirs]) => {
      expect(isEqual(mergeConfigs<unknown>(base, ours, base), ours, { tags: true })).toBe(true);
      expect(isEqual(mergeConfigs<unknown>(base, base, ours), ours, { tags: true })).toBe(true);
      expect(isEqual(mergeConfigs<unknown>(base, ours, ours), ours, { tags: true })).toBe(true);
      const root = (left: unknown, right: unknown) => ({ left, right });
      const both = mergeConfigs<unknown>(root(base, other), root(ours, other), root(base, theirs));
      expect(isEqual(both, root(ours, theirs), { tags: true })).toBe(true);
    }),
    tries,
  );
});
