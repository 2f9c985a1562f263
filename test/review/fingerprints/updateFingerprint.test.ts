/** @file Fingerprints of updates on the host: schedules at the steps where they turn, what is prepared and reported. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  AdamW,
  BaseSchedule,
  type FlatUpdater,
  Learner,
  PiecewiseSchedule,
} from '../../../src/learners/index.js';
import { hostUpdateDigest } from '../../../src/review/fingerprints/updateFingerprint.js';

/** Halves at a step. */
class Turn extends BaseSchedule.with({ at: z.int().describe('The step.') }) {
  valueAt(step: number): number {
    return step < this.hp.at ? 1 : 0.5;
  }
}

/** Halves one step later. */
class Late extends Turn {
  override valueAt(step: number): number {
    return super.valueAt(step - 1);
  }
}

const digestOf = (lrSchedule: Config<BaseSchedule>, Class = Learner): string => {
  const optimizer = AdamW.config({ learningRate: 1, lrSchedule, clipGradientNormToValue: 1, emaDecay: 0.5 });
  return hostUpdateDigest(build(Class.config({ optimizer })));
};

const after = (boundary: number, schedule: Config<BaseSchedule>): Config<BaseSchedule> =>
  PiecewiseSchedule.config({ boundaries: [boundary], schedules: [schedule, schedule] });

test('a step late, wherever the schedule turns, and within another one', () => {
  for (const at of [1, 499, 12_345, 7_654_321]) {
    expect(digestOf(Turn.config({ at })), `${at}`).toBe(digestOf(Turn.config({ at })));
    expect(digestOf(Late.config({ at })), `${at}`).not.toBe(digestOf(Turn.config({ at })));
    const [turns, turnsLate] = [after(98_765, Turn.config({ at })), after(98_765, Late.config({ at }))];
    expect(digestOf(turnsLate), `${at} within`).not.toBe(digestOf(turns));
  }
});

/** Learners whose updater does one thing otherwise. */
const withUpdater = (change: (updater: FlatUpdater) => void) =>
  class Changed extends Learner {
    override createUpdater(...given: Parameters<Learner['createUpdater']>): FlatUpdater {
      const updater = super.createUpdater(...given);
      change(updater);
      return updater;
    }
  };

test.each([
  [
    'prepares the next step',
    (u: FlatUpdater) =>
      (u.prepare = (
        (prepare) => (s, r) =>
          prepare(s + 1, r)
      )(u.prepare.bind(u))),
  ],
  [
    'prepares the first run of a call only',
    (u: FlatUpdater) =>
      (u.prepare = (
        (prepare) => (s) =>
          prepare(s)
      )(u.prepare.bind(u))),
  ],
  ['reports no norms', (u: FlatUpdater) => (u.gradNorms = () => ({}))],
  [
    'reads gradients as parameters',
    (u: FlatUpdater) => Object.assign(u.inputs.groups.decay!, { param: u.inputs.groups.decay!.grad }),
  ],
])('an updater that %s', (_, change) => {
  const schedule = Turn.config({ at: 10 });
  const same = digestOf(
    schedule,
    withUpdater(() => {}),
  );
  expect(same).toBe(digestOf(schedule));
  expect(
    digestOf(
      schedule,
      withUpdater((updater) => void change(updater)),
    ),
  ).not.toBe(same);
});
