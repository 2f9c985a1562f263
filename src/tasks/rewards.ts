/** @file Rewards of sampled answers, and their advantages within the group of one prompt. */
import { InputError } from '../inputs/index.js';

/** An answer to be rewarded. Texts are without the ids that begin and end a sequence. */
export interface Answer {
  readonly prompt: string;
  readonly answer: string;
  /** Text of the record's targets. */
  readonly target: string;
  /** Tokens of the answer, the end included. */
  readonly ids: readonly number[];
  /** Whether the answer has come to its end, rather than to its greatest length. */
  readonly isEnded: boolean;
}

/** The reward of an answer; a pure function. */
export type Reward = (answer: Answer) => number;

/** The reward. @throws InputError with the answer, where it is not finite or the function fails */
export function rewardOf(reward: Reward, answer: Answer, place: string): number {
  const failed = (problem: string, cause?: unknown): InputError =>
    new InputError(
      `${place}, ${JSON.stringify(answer.prompt)}, answer ${JSON.stringify(answer.answer)}: ${problem}. A reward is a finite number.`,
      { cause },
    );
  let value: unknown;
  try {
    value = reward(answer);
  } catch (cause) {
    throw failed(`the reward fails: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
  if (typeof value !== 'number' || !Number.isFinite(value)) throw failed(`the reward is ${String(value)}`);
  // As batches hold it, so that a state has the same number.
  return Math.fround(value);
}

/** Keeps answers of almost equal rewards from large advantages. */
const LEAST_DEVIATION = 1e-4;

/** Rewards of the answers to one prompt, less their mean, over their standard deviation. */
export function advantagesOf(rewards: readonly number[]): number[] {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length;
  return rewards.map((reward) => Math.fround((reward - mean) / (Math.sqrt(variance) + LEAST_DEVIATION)));
}
