/** @file Interface of search algorithms: proposals as functions of the seed and the trials so far. */
import { Configurable } from '../../hparams/index.js';
import { Draws } from '../proposalDraws.js';
import type { Space } from '../space.js';
import type { Proposal, Trial } from '../trial.js';

/** The state of a search, to which a proposal answers. */
export interface SearchState {
  readonly space: Space;
  /** Number of the trial to propose. */
  readonly number: number;
  /** Earlier trials by number, those that run included, and those of prior studies. */
  readonly trials: readonly Trial[];
  readonly seed: number;
}

/** No proposal: the space is exhausted, or trials that run must end first. */
export type NoProposal = 'exhausted' | 'wait';

/**
 * A search algorithm. It has no state of its own: what it proposes follows from the seed, the number of the trial and the
 * trials so far, so a search that was killed goes on as if it had not been.
 */
export abstract class BaseAlgorithm extends Configurable {
  static override readonly isAbstract: boolean = true;

  /** Whether it compares trials by several rewards; others use the first one. */
  readonly isMultiObjective: boolean = false;

  /** Whether its values come from the space; otherwise the space may be empty. */
  get needsSpace(): boolean {
    return true;
  }

  abstract propose(state: SearchState): Proposal | NoProposal;

  protected drawsOf({ seed, number }: SearchState): Draws {
    return new Draws(seed, number);
  }
}
