/**
 * @file Campaigns of injected faults: how many tries, and the seed that they are drawn from.
 *
 * `npm run test:long` makes all tries; with SHORT=1, as CI has it, a part of them. SEED=n repeats a campaign.
 */
import { randomInt } from 'node:crypto';
import fc from 'fast-check';

/** The seed of this run, which a failure names. */
export const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

/** Whether campaigns are to be short. */
export const isShort = process.env.SHORT === '1';

/** How many tries a campaign makes. */
export const tries = (all: number, short: number): number => (isShort ? short : all);

/**
 * How often a suite repeats what it does: all times in `npm run test:long`, which has these suites too; `daily` otherwise,
 * and with SHORT=1, where only suites that take long remain of them.
 */
export const runs = (all: number, daily = Math.ceil(all / 20)): number =>
  process.env.LONG === '1' ? tries(all, daily) : daily;

/**
 * Cases of a suite that differ in little: all where {@link runs} are all, the first ones every day. Not for suites with a
 * `longTest`, which is all that the long run has of them.
 */
export const firstOf = <T>(cases: readonly T[], daily = 1): readonly T[] =>
  cases.slice(0, runs(cases.length, daily));

/** A whole list, or with SHORT=1 one in so many, beginning with the one that a number draws. */
export const oneIn = <T>(every: number, all: readonly T[], from = seed): T[] => {
  const step = tries(1, every);
  return all.filter((_, i) => i % step === from % step);
};

/** Draws from the seed; `salt` keeps campaigns apart. */
export const draw = <T>(arbitrary: fc.Arbitrary<T>, count: number, salt: number): T[] =>
  fc.sample(arbitrary, { numRuns: count, seed: seed ^ salt });

/** Title of a campaign, with all that it takes to repeat it. */
export const title = (what: string): string => `${what} (SEED=${seed}${isShort ? ' SHORT=1' : ''})`;
