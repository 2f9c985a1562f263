/** @file Asynchronous successive halving, ASHA (Li et al., 2020). */
import { z } from 'zod';
import { instance } from '../../hparams/index.js';
import { byReward, type Proposal, rewarded, type Trial } from '../trial.js';
import { BaseAlgorithm, type NoProposal, type SearchState } from './algorithm.js';
import { RandomSearch } from './randomSearch.js';

const steps = z.int().positive();

/**
 * Trains many trials for a few steps, and the best part of them, again and again, for more. A promoted trial is a new one
 * with the same values, which goes on from the state of the one before. Promotion waits for no trial: as soon as one is in
 * the best part of its rung, it is promoted.
 */
export class SuccessiveHalving extends BaseAlgorithm.with(
  {
    minSteps: steps.describe('Steps of the lowest rung.'),
    maxSteps: steps.describe('Steps of the highest rung.'),
    reductionFactor: z
      .int()
      .min(2)
      .default(4)
      .describe('One of so many trials is promoted, to as many times the steps.'),
    sampler: instance(BaseAlgorithm, () => RandomSearch.config()).describe(
      'Proposes the trials of the lowest rung.',
    ),
  },
  (schema) =>
    schema.refine(({ minSteps, maxSteps }) => minSteps <= maxSteps, {
      path: ['minSteps'],
      error: 'must not be above maxSteps',
    }),
) {
  propose(state: SearchState): Proposal | NoProposal {
    const rungs = this.#rungs();
    const promoted = new Set(state.trials.map(({ from }) => from));
    for (let rung = rungs.length - 2; rung >= 0; rung--) {
      const done = byReward(rewarded(state.trials.filter((trial) => trial.steps === rungs[rung])));
      const best = done.slice(0, Math.floor(done.length / this.hp.reductionFactor));
      const next = best.find(({ number }) => !promoted.has(number));
      if (next !== undefined) return { values: next.values, steps: rungs[rung + 1]!, from: next.number };
    }
    return this.#begin(state, rungs[0]!);
  }

  /** Steps of the rungs, ascending; the highest has `maxSteps`. */
  #rungs(): number[] {
    const { minSteps, maxSteps, reductionFactor } = this.hp;
    const rungs = [];
    for (let at = minSteps; at < maxSteps; at *= reductionFactor) rungs.push(at);
    return [...rungs, maxSteps];
  }

  #begin(state: SearchState, lowest: number): Proposal | NoProposal {
    const trials = state.trials.filter((trial: Trial) => trial.from === undefined);
    const proposal = this.hp.sampler.propose({ ...state, trials });
    return typeof proposal === 'string' ? proposal : { ...proposal, steps: lowest };
  }
}
