/** @file A search in memory, told the rewards of a function. */
import { build, type Config } from '../../src/hparams/index.js';
import type { BaseAlgorithm, Proposal, Space, Trial, Values } from '../../src/search/index.js';

/** Trials of a search, one after the other; a reward that is no number is infeasible. */
export function searched(
  algorithm: Config<BaseAlgorithm>,
  space: Space,
  reward: (values: Values, proposal: Proposal) => number | readonly number[],
  { count = 100, seed = 0 } = {},
): Trial[] {
  const built = build(algorithm);
  const trials: Trial[] = [];
  for (let number = 0; number < count; number++) {
    const proposal = built.propose({ space, number, trials, seed });
    if (typeof proposal === 'string') break;
    const rewards = [reward(proposal.values, proposal)].flat();
    const isFeasible = rewards.every((each) => !Number.isNaN(each));
    trials.push({
      ...proposal,
      number,
      ...(isFeasible ? { state: 'done', rewards } : { state: 'infeasible' }),
    });
  }
  return trials;
}

/** The highest first reward. */
export const bestOf = (trials: readonly Trial[]): number =>
  Math.max(...trials.map(({ rewards }) => rewards?.[0] ?? Number.NEGATIVE_INFINITY));
