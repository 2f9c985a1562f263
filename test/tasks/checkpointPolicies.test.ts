/** @file Policies of checkpoints: when each saves, which it keeps, alone and together. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CheckpointPolicy, type SavedCheckpoint, stepsToDelete } from '../../src/checkpoints/index.js';
import { build } from '../../src/hparams/index.js';
import {
  SaveAtSteps,
  SaveBest,
  SaveContinuously,
  SaveEveryDuration,
  SaveEverySteps,
} from '../../src/tasks/index.js';

const moment = { step: 7, seconds: 0, isSaving: false, hasFailed: false };

/** The checkpoints that are left of a run of `last` steps that keeps one newest. */
function left(policies: readonly CheckpointPolicy[], last: number): number[] {
  let all: SavedCheckpoint[] = [];
  for (let step = 0; step <= last; step++) {
    if (step > 0 && !policies.some((policy) => policy.isDue({ ...moment, step }))) continue;
    all.push({ step, savedAt: step, isGood: true });
    const gone = stepsToDelete(all, { maxToKeep: 1, keepIntervalSeconds: null, policies });
    all = all.filter((each) => !gone.includes(each.step));
  }
  return all.map(({ step }) => step);
}

test('permanent checkpoints, with ephemeral ones between them', () => {
  const permanent = build(SaveEverySteps.config({ steps: 100 }));
  const ephemeral = build(SaveEverySteps.config({ steps: 10, keep: 2 }));
  expect(left([permanent, ephemeral], 259)).toEqual([0, 100, 200, 240, 250]);
  expect(left([ephemeral], 259)).toEqual([240, 250]);
  const fixed = build(SaveAtSteps.config({ steps: [33, 7, 500] }));
  expect(left([ephemeral, fixed], 57)).toEqual([7, 33, 40, 50]);
});

test('by time, and as soon as the last save is done, but not at once after one that failed', () => {
  const timed = build(SaveEveryDuration.config({ duration: '10m' }));
  expect([599, 600].map((seconds) => timed.isDue({ ...moment, seconds }))).toEqual([false, true]);
  const continuous = build(SaveContinuously.config());
  const due = (changed: Partial<typeof moment>) => continuous.isDue({ ...moment, ...changed });
  expect([due({}), due({ isSaving: true })]).toEqual([true, false]);
  expect([due({ hasFailed: true }), due({ hasFailed: true, seconds: 10 })]).toEqual([false, true]);
  expect(left([continuous], 5)).toEqual([5]);
});

test('a duration that does not parse is refused', () => {
  expect(() => SaveEveryDuration.config({ duration: '10 minutes' })).toThrow(
    "expected a duration such as 12h, 30m, 90s or 2d, got '10 minutes'",
  );
});

const label = 'eval_test_x/accuracy';
const scored = (...values: readonly number[]): SavedCheckpoint[] =>
  values.map((value, step) => ({ step, savedAt: 0, isGood: true, metrics: { [label]: value } }));

test('the best by a metric, ties to the earlier one or the later, without values that are not finite', () => {
  const best = (values: Partial<{ mode: 'max'; keep: number; ties: 'later' }>) =>
    build(SaveBest.config({ evaluation: 'eval_test_x', metric: 'accuracy', ...values } as never));
  const all = scored(3, 1, 2, 1, Number.NaN, 3, Number.NEGATIVE_INFINITY);
  expect(best({}).kept(all)).toEqual([1]);
  expect(best({ ties: 'later' }).kept(all)).toEqual([3]);
  expect(best({ mode: 'max', keep: 3 }).kept(all)).toEqual([0, 5, 2]);
  expect(best({}).kept([{ step: 1, savedAt: 0, isGood: true, metrics: { other: 0 } }])).toEqual([]);
});

test('over any values, deleting step by step leaves the best of all by every metric, and the newest', () => {
  const value = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constant(Number.NaN));
  const settings = fc.record({
    mode: fc.constantFrom('min', 'max'),
    keep: fc.integer({ min: 1, max: 3 }),
    ties: fc.constantFrom('earlier', 'later'),
  });
  const history = fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(history, settings, settings, (values, a, b) => {
      const policies = [a, b].map((each, i) =>
        build(SaveBest.config({ evaluation: 'e', metric: `m${i}`, ...each } as never)),
      );
      const all = values.map(([first, second], step) => ({
        ...{ step, savedAt: 0, isGood: true },
        metrics: { 'e/m0': first, 'e/m1': second },
      }));
      let found: SavedCheckpoint[] = [];
      for (const each of all) {
        found.push(each);
        const gone = stepsToDelete(found, { maxToKeep: 1, keepIntervalSeconds: null, policies });
        found = found.filter(({ step }) => !gone.includes(step));
      }
      const wanted = new Set([all.length - 1, ...policies.flatMap((policy) => policy.kept(all))]);
      expect(found.map(({ step }) => step)).toEqual([...wanted].sort((x, y) => x - y));
    }),
    { numRuns: 50 },
  );
});
