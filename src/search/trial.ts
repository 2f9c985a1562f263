/** @file Trials of a search, and how their rewards compare. */
import type { Values } from './space.js';

/** Values to try, and where the trial begins and ends if not at its first and last step. */
export interface Proposal {
  readonly values: Values;
  /** Step at which the trial ends. */
  readonly steps?: number;
  /** Number of the trial whose state it goes on from. */
  readonly from?: number;
}

/**
 * `running`: it is proposed, and nothing is told yet. `done`: it has rewards. `stopped`: it ended early, with the rewards
 * so far. `infeasible`: it has none, as where they are not numbers. `failed`: it ended by an error.
 */
export type TrialState = 'running' | 'done' | 'stopped' | 'infeasible' | 'failed';

/** A trial. */
export interface Trial extends Proposal {
  /** 0, 1, 2, … in the order of proposals. */
  readonly number: number;
  readonly state: TrialState;
  /** One for each objective, higher ones are better; absent where there are none. */
  readonly rewards?: readonly number[];
}

/** A trial that has rewards. */
export type RewardedTrial = Trial & { readonly rewards: readonly number[] };

/** The trials with rewards. */
export function rewarded(trials: readonly Trial[]): RewardedTrial[] {
  return trials.filter((trial): trial is RewardedTrial => trial.rewards !== undefined);
}

/** Trials in the order of their reward, the best first; of equal ones, the earlier. */
export function byReward(trials: readonly RewardedTrial[]): RewardedTrial[] {
  return trials.toSorted((a, b) => b.rewards[0]! - a.rewards[0]! || a.number - b.number);
}
