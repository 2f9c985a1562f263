/** @file Random search (paxml/automl.py; Bergstra and Bengio, 2012). */
import { drawValues } from '../space.js';
import type { Proposal } from '../trial.js';
import { BaseAlgorithm, type SearchState } from './algorithm.js';

/** Independent values of every trial. */
export class RandomSearch extends BaseAlgorithm {
  propose(state: SearchState): Proposal {
    return { values: drawValues(state.space, this.drawsOf(state)) };
  }
}
