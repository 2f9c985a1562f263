/** @file NSGA-II: evolution by dominance and crowding, for several objectives (Deb et al., 2002). */
import { z } from 'zod';
import { bestPlaced, type PlacedTrial } from '../pareto.js';
import type { Draws } from '../proposalDraws.js';
import {
  drawValue,
  drawValues,
  fillValues,
  intervalOf,
  type NumberDomain,
  pointOf,
  type Values,
  valueAt,
} from '../space.js';
import { type Proposal, rewarded } from '../trial.js';
import { BaseAlgorithm, type NoProposal, type SearchState } from './algorithm.js';

const probability = z.number().min(0).max(1);
const index = z.number().positive();

/**
 * Generations of trials, each from the best ones before: of two drawn, the one on the better front is a parent, or in the
 * emptier part of one front. Numbers cross by simulated binary crossover, and mutate by a polynomial distribution; choices
 * come from either parent, and are drawn anew.
 */
export class Nsga2 extends BaseAlgorithm.with({
  populationSize: z.int().min(2).default(50).describe('Trials of a generation, and parents of the next.'),
  crossoverProb: probability.default(0.9).describe('Probability that two parents cross.'),
  mutationProb: probability
    .nullable()
    .default(null)
    .describe('Probability that a parameter mutates; null: one of them does on average.'),
  crossoverIndex: index.default(15).describe('The higher, the nearer children are to their parents.'),
  mutationIndex: index.default(20).describe('The higher, the smaller mutations are.'),
}) {
  override readonly isMultiObjective = true;

  propose(state: SearchState): Proposal | NoProposal {
    const { space, number, trials } = state;
    const { populationSize } = this.hp;
    const draws = this.drawsOf(state);
    const start = number - (number % populationSize);
    // A generation follows from all trials before it, in whichever order they ended.
    const before = trials.filter((trial) => trial.number < start);
    if (before.some((trial) => trial.state === 'running')) return 'wait';
    const parents = bestPlaced(rewarded(before), populationSize);
    if (parents.length < 2) return { values: drawValues(space, draws) };
    const [first, second] = [tournament(parents, draws), tournament(parents, draws)];
    return { values: this.#child(first, second, state, draws) };
  }

  #child(a: Values, b: Values, { space }: SearchState, draws: Draws): Values {
    const { crossoverProb, mutationProb, crossoverIndex, mutationIndex } = this.hp;
    const crosses = draws.uniform() < crossoverProb;
    const rate = mutationProb ?? 1 / Object.keys(a).length;
    return fillValues(space, (name, domain) => {
      const [own, other] = [a[name] ?? b[name], b[name] ?? a[name]];
      if (own === undefined || other === undefined) return drawValue(domain, draws);
      const mutates = draws.uniform() < rate;
      if (domain.kind === 'choice') {
        if (mutates) return drawValue(domain, draws);
        return crosses && draws.uniform() < 0.5 ? other : own;
      }
      let point = pointOf(domain, own as number);
      if (crosses && draws.uniform() < 0.5)
        point = crossed(point, pointOf(domain, other as number), crossoverIndex, draws);
      if (mutates) point = nudged(point, domain, mutationIndex, draws);
      return valueAt(domain, point);
    });
  }
}

/** Simulated binary crossover (Deb and Agrawal, 1995): one of two children, as far from each other as the parents. */
function crossed(a: number, b: number, index: number, draws: Draws): number {
  const u = draws.uniform();
  const spread = u < 0.5 ? (2 * u) ** (1 / (index + 1)) : (2 * (1 - u)) ** (-1 / (index + 1));
  return draws.uniform() < 0.5
    ? ((1 + spread) * a + (1 - spread) * b) / 2
    : ((1 - spread) * a + (1 + spread) * b) / 2;
}

/** Polynomial mutation (Deb and Goyal, 1996). */
function nudged(point: number, domain: NumberDomain, index: number, draws: Draws): number {
  const { low, high } = intervalOf(domain);
  const u = draws.uniform();
  const share = u < 0.5 ? (2 * u) ** (1 / (index + 1)) - 1 : 1 - (2 * (1 - u)) ** (1 / (index + 1));
  return Math.min(high, Math.max(low, point + share * (high - low)));
}

function tournament(parents: readonly PlacedTrial[], draws: Draws): Values {
  const drawn = draws.sample(parents.length, 2).map((place) => parents[place]!);
  const [a, b] = drawn as [PlacedTrial, PlacedTrial];
  const isBetter = a.front < b.front || (a.front === b.front && a.crowding >= b.crowding);
  return (isBetter ? a : b).trial.values;
}
