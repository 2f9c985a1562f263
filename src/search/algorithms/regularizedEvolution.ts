/** @file Regularized evolution (paxml/automl.py; Real et al., 2018). */
import { z } from 'zod';
import type { Draws } from '../proposalDraws.js';
import { drawValue, drawValues, fillValues, type Space, sizeOf, type Values } from '../space.js';
import { byReward, type Proposal, rewarded } from '../trial.js';
import { BaseAlgorithm, type SearchState } from './algorithm.js';

const count = z.int().positive();

/**
 * Mutates the best of a few trials, drawn among the last ones: those that are old die, however good they are. The first
 * trials are random. A mutation draws one parameter anew, and what becomes active by it.
 */
export class RegularizedEvolution extends BaseAlgorithm.with({
  populationSize: count.default(100).describe('Last trials with rewards, which are alive.'),
  tournamentSize: count.default(10).describe('Trials drawn among them, of which the best one is mutated.'),
}) {
  propose(state: SearchState): Proposal {
    const { populationSize, tournamentSize } = this.hp;
    const draws = this.drawsOf(state);
    const alive = rewarded(state.trials).slice(-populationSize);
    if (alive.length < populationSize) return { values: drawValues(state.space, draws) };
    const drawn = draws.sample(alive.length, tournamentSize).map((place) => alive[place]!);
    return { values: mutated(byReward(drawn)[0]!.values, state.space, draws) };
  }
}

/** Values with one parameter drawn anew, which gets another value where it has one. */
function mutated(values: Values, space: Space, draws: Draws): Values {
  const names = Object.keys(values).filter((name) => space[name] !== undefined && sizeOf(space[name]) > 1);
  const changed = names[draws.below(names.length)];
  return fillValues(space, (name, domain) => {
    const old = values[name];
    if (old === undefined) return drawValue(domain, draws);
    if (name !== changed) return old;
    for (;;) {
      const value = drawValue(domain, draws);
      if (value !== old) return value;
    }
  });
}
