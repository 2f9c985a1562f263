/** @file Population-based training (Jaderberg et al., 2017). */
import { z } from 'zod';
import type { Draws } from '../proposalDraws.js';
import { drawValue, drawValues, fillValues, type Space, type Values, valueAt } from '../space.js';
import { byReward, type Proposal, type RewardedTrial, rewarded } from '../trial.js';
import { BaseAlgorithm, type NoProposal, type SearchState } from './algorithm.js';

/**
 * Trains a population in rounds. After a round, each of the worst members goes on from the state of one of the best, with
 * values near to that one's; the others go on with their own. A trial is one round of one member.
 */
export class PopulationBasedTraining extends BaseAlgorithm.with({
  populationSize: z.int().min(2).default(16).describe('Members of the population.'),
  stepsPerRound: z.int().positive().describe('Steps between two choices.'),
  quantile: z.number().positive().max(0.5).default(0.25).describe('Share of the best, and of the worst.'),
  resampleProb: z
    .number()
    .min(0)
    .max(1)
    .default(0.25)
    .describe('Probability that a parameter is drawn anew, not moved.'),
  factors: z
    .array(z.number().positive())
    .min(1)
    .default([0.8, 1.2])
    .describe('A number is multiplied by one of them.'),
}) {
  propose(state: SearchState): Proposal | NoProposal {
    const { number, trials, space } = state;
    const { populationSize, stepsPerRound } = this.hp;
    const draws = this.drawsOf(state);
    const steps = (Math.floor(number / populationSize) + 1) * stepsPerRound;
    if (number < populationSize) return { values: drawValues(space, draws), steps };
    const start = number - (number % populationSize) - populationSize;
    const round = trials.filter((trial) => trial.number >= start && trial.number < start + populationSize);
    if (round.length < populationSize || round.some(({ state: each }) => each === 'running')) return 'wait';
    const ranked = byReward(rewarded(round));
    const few = Math.ceil(ranked.length * this.hp.quantile);
    const own = round.find((trial) => trial.number === number - populationSize)!;
    const place = ranked.indexOf(own as RewardedTrial);
    if (place >= 0 && place < Math.max(few, ranked.length - few))
      return { values: own.values, steps, from: own.number };
    const model = ranked[draws.below(few)];
    if (model === undefined) return { values: drawValues(space, draws), steps };
    return { values: this.#explored(model.values, space, draws), steps, from: model.number };
  }

  /** Values near to those of a model. */
  #explored(values: Values, space: Space, draws: Draws): Values {
    const { resampleProb, factors } = this.hp;
    return fillValues(space, (name, domain) => {
      const value = values[name];
      const isMoved = draws.uniform() >= resampleProb;
      if (value === undefined || !isMoved) return drawValue(domain, draws);
      if (domain.kind === 'choice') return value;
      const moved = (value as number) * factors[draws.below(factors.length)]!;
      return valueAt(domain, domain.log ? Math.log(moved) : moved);
    });
  }
}
