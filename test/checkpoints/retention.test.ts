/** @file Which checkpoints stay: Pax's cases, and properties over any history. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  parseDuration,
  type RetentionOptions,
  type SavedCheckpoint,
  stepsToDelete,
} from '../../src/checkpoints/index.js';

/** Saves one after the other and lets go as Checkpointer does; the steps that are left. */
function history(saves: readonly SavedCheckpoint[], options: RetentionOptions): number[] {
  let left: SavedCheckpoint[] = [];
  for (const save of saves) {
    left.push(save);
    const gone = stepsToDelete(left, options);
    left = left.filter(({ step }) => !gone.includes(step));
  }
  return left.map(({ step }) => step);
}

const every = (interval: number, last: number, seconds = 0): SavedCheckpoint[] =>
  Array.from({ length: last / interval + 1 }, (_, index) => ({
    step: index * interval,
    savedAt: index * seconds * 1000,
    isGood: true,
  }));

test('the newest are kept, or all', () => {
  expect(history(every(1000, 9000), { maxToKeep: 2, keepIntervalSeconds: null })).toEqual([8000, 9000]);
  expect(history(every(1000, 9000), { maxToKeep: null, keepIntervalSeconds: null })).toHaveLength(10);
  expect(history(every(2000, 8000), { maxToKeep: 4, keepIntervalSeconds: null })).toEqual([
    2000, 4000, 6000, 8000,
  ]);
});

test('those an interval apart are kept beside them', () => {
  // A checkpoint every 30 minutes, two hours apart: every fourth.
  const saves = every(1000, 9000, 1800);
  expect(history(saves, { maxToKeep: 1, keepIntervalSeconds: 7200 })).toEqual([0, 4000, 8000, 9000]);
  expect(history(saves, { maxToKeep: 2, keepIntervalSeconds: 3601 })).toEqual([0, 3000, 6000, 8000, 9000]);
});

test('a clock that was wrong for a while does not end the keeping of those an interval apart', () => {
  const hour = 3_600_000;
  const saves = every(1000, 9000, 3600).map((save) =>
    save.step < 4000 ? { ...save, savedAt: save.savedAt + 1e6 * hour } : save,
  );
  expect(history(saves, { maxToKeep: 1, keepIntervalSeconds: 7200 })).toEqual([
    0, 2000, 4000, 6000, 8000, 9000,
  ]);
});

test('the newest good one stays, however many bad ones follow', () => {
  const turningBad = every(1000, 9000).map((save) => ({ ...save, isGood: save.step <= 3000 }));
  expect(history(turningBad, { maxToKeep: 2, keepIntervalSeconds: null })).toEqual([3000, 8000, 9000]);
  // Once it is good again, it needs no other.
  const recovered = turningBad.map((save) => ({ ...save, isGood: save.isGood || save.step === 7000 }));
  expect(history(recovered, { maxToKeep: 1, keepIntervalSeconds: null })).toEqual([7000, 9000]);
});

test('the best one stays until another is better', () => {
  const options = { maxToKeep: 2, keepIntervalSeconds: null };
  expect(stepsToDelete(every(1000, 5000), options, 1000)).toEqual([0, 2000, 3000]);
  expect(stepsToDelete(every(1000, 5000), options, 5000)).toEqual([0, 1000, 2000, 3000]);
});

test('over any history the newest and the newest good one stay, kept ones are far enough apart, and no gap could hold another', () => {
  const saves = fc
    .array(fc.record({ gap: fc.nat(100), isGood: fc.boolean() }), { minLength: 1, maxLength: 40 })
    .map((all) => {
      let seconds = 0;
      return all.map(({ gap, isGood }, step) => ({ step, savedAt: (seconds += gap) * 1000, isGood }));
    });
  fc.assert(
    fc.property(
      saves,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 200 }),
      (all, maxToKeep, seconds) => {
        const options = { maxToKeep, keepIntervalSeconds: seconds };
        const left = history(all, options);
        const newest = all.slice(-maxToKeep).map(({ step }) => step);
        const good = all.findLast(({ isGood }) => isGood);
        if (good !== undefined) newest.push(good.step);
        expect(left).toEqual(expect.arrayContaining(newest));
        const times = left.filter((step) => !newest.includes(step)).map((step) => all[step]!.savedAt);
        times.slice(1).forEach((time, index) => {
          expect(time - times[index]!).toBeGreaterThanOrEqual(seconds * 1000);
        });
        // Deleting as one goes leaves the same as deciding at the end.
        const atOnce = stepsToDelete(all, options);
        expect(left).toEqual(all.map(({ step }) => step).filter((step) => !atOnce.includes(step)));
      },
    ),
  );
});

test('durations have a unit or are seconds', () => {
  expect(['30s', '5m', '12h', '1.5d', 90].map(parseDuration)).toEqual([30, 300, 43_200, 129_600, 90]);
  for (const bad of ['x', '12', 'h', '-1h', '1w', '', -1, Number.NaN]) {
    expect(() => parseDuration(bad)).toThrow(new RangeError(`Unable to parse string duration \`${bad}\`.`));
  }
});
