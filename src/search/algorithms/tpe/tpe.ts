/** @file Tree-structured Parzen estimator, of all parameters jointly (Bergstra et al., 2011; Falkner et al., 2018). */
import { z } from 'zod';
import { bestPlaced } from '../../pareto.js';
import type { Draws } from '../../proposalDraws.js';
import {
  type Domain,
  drawValue,
  isActive,
  type Space,
  sizeOf,
  type Value,
  type Values,
} from '../../space.js';
import { byReward, type Proposal, type RewardedTrial, rewarded, type Trial } from '../../trial.js';
import { BaseAlgorithm, type SearchState } from '../algorithm.js';
import { ParzenEstimator } from './parzen.js';

/**
 * Proposes the values that are likeliest among the best trials and unlikeliest among the others, of a number of
 * candidates drawn from an estimate of the best. Parameters that are active under the same condition are estimated
 * jointly, from the trials that have them. Infeasible trials and those that run count with the others.
 */
export class Tpe extends BaseAlgorithm.with({
  numStartupTrials: z.int().positive().default(10).describe('Random trials at first.'),
  numCandidates: z.int().positive().default(24).describe('Candidates, of which the best is proposed.'),
  bestShare: z
    .number()
    .positive()
    .max(1)
    .default(0.1)
    .describe('Share of the trials that count as the best.'),
  mostBest: z.int().positive().default(25).describe('The largest number of best trials.'),
  priorWeight: z.number().positive().default(1).describe('Weight of the whole space; a trial has 1.'),
}) {
  override readonly isMultiObjective = true;

  propose(state: SearchState): Proposal {
    const { space, trials } = state;
    const draws = this.drawsOf(state);
    const isStarting = rewarded(trials).length < this.hp.numStartupTrials;
    let values: Values = {};
    for (const group of groupsOf(space)) {
      const [first] = group.values();
      if (!isActive(first!, values)) continue;
      const names = [...group.keys()];
      const known = trials.filter((trial) => names.every((name) => trial.values[name] !== undefined));
      const drawn =
        isStarting || rewarded(known).length === 0 || sizeOf(first!) === 1
          ? Object.fromEntries(Array.from(group, ([name, domain]) => [name, drawValue(domain, draws)]))
          : this.#best(group, known, draws);
      values = { ...values, ...drawn };
    }
    // In the order of the space, as in every other trial.
    const ordered = Object.keys(space).flatMap((name): [string, Value][] =>
      Object.hasOwn(values, name) ? [[name, values[name]!]] : [],
    );
    return { values: Object.fromEntries(ordered) };
  }

  /** The best of some candidates for the parameters of a group. */
  #best(group: ReadonlyMap<string, Domain>, trials: readonly Trial[], draws: Draws): Values {
    const known = rewarded(trials);
    const count = Math.min(Math.ceil(this.hp.bestShare * known.length), this.hp.mostBest);
    const best = new Set(bestOf(known, count));
    const [good, others] = [true, false].map((isBest) => {
      const members = trials.filter((trial) => best.has(trial) === isBest);
      const weights = [...weightsOf(members.length), this.hp.priorWeight];
      return new ParzenEstimator(
        group,
        members.map(({ values }) => values),
        weights,
      );
    });
    let chosen: Values = {};
    let highest = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < this.hp.numCandidates; i++) {
      const candidate = good!.draw(draws);
      const gain = good!.logDensity(candidate) - others!.logDensity(candidate);
      if (gain > highest) [chosen, highest] = [candidate, gain];
    }
    return chosen;
  }
}

/** The best trials: by dominance where there are several objectives. */
function bestOf(trials: readonly RewardedTrial[], count: number): Trial[] {
  return trials[0]!.rewards.length > 1
    ? bestPlaced(trials, count).map(({ trial }) => trial)
    : byReward(trials).slice(0, count);
}

/** Weights of trials from the oldest on: the last 25 have 1, those before less the older they are (Bergstra et al., 2011). */
function weightsOf(count: number): number[] {
  const older = Math.max(0, count - 25);
  return Array.from({ length: count }, (_, i) =>
    i >= older ? 1 : older === 1 ? 1 / count : 1 / count + ((1 - 1 / count) * i) / (older - 1),
  );
}

/** Parameters by the condition that they are active under, in the order of the space; those with one value are left out. */
function groupsOf(space: Space): Map<string, Domain>[] {
  const groups = new Map<string, Map<string, Domain>>();
  for (const [name, domain] of Object.entries(space)) {
    const condition = JSON.stringify(domain.when) + (sizeOf(domain) === 1 ? name : '');
    const group = groups.get(condition) ?? new Map<string, Domain>();
    groups.set(condition, group.set(name, domain));
  }
  return [...groups.values()];
}
