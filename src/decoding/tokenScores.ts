/** @file Scores of decoded tokens: log-probabilities, and where they are asked for entropies and the likeliest others. */
import type { DrawnIds } from './decodingModel.js';
import { entropyOf, logProbability, type SamplingRule, topK } from './sampling.js';

/** Scores of tokens besides log-probabilities. */
export type Told = Pick<SamplingRule, 'entropy' | 'topLogprobs'>;

/** Scores of `size` places, of which those of prompts and behind ends have none: logprob 1 and entropy 0. */
export class TokenScores {
  readonly logprobs: Float32Array;
  /** In nats. */
  readonly entropies: Float32Array | undefined;
  /** Likeliest ids, `topLogprobs` of each place, likeliest first. */
  readonly topIds: Int32Array | undefined;
  readonly topLogprobs: Float32Array | undefined;
  private readonly count: number;

  constructor(size: number, { entropy = false, topLogprobs = 0 }: Told = {}) {
    this.count = topLogprobs;
    this.logprobs = new Float32Array(size).fill(1);
    if (entropy) this.entropies = new Float32Array(size);
    if (topLogprobs > 0) {
      this.topIds = new Int32Array(size * topLogprobs);
      this.topLogprobs = new Float32Array(size * topLogprobs).fill(1);
    }
  }

  /** Takes the scores that a program has at `index`. */
  copy(place: number, drawn: DrawnIds, index: number): void {
    const { count } = this;
    this.logprobs[place] = drawn.logprobs[index]!;
    if (this.entropies) this.entropies[place] = drawn.entropies![index]!;
    const others = [index * count, (index + 1) * count] as const;
    this.topIds?.set(drawn.topIds!.subarray(...others), place * count);
    this.topLogprobs?.set(drawn.topLogprobs!.subarray(...others), place * count);
  }

  /** Computes the scores of an id by its logits, [V]. */
  compute(place: number, logits: Float32Array, id: number): void {
    this.logprobs[place] = logProbability(logits, id);
    if (this.entropies) this.entropies[place] = entropyOf(logits);
    if (!this.topIds) return;
    const ids = topK(logits, this.count);
    this.topIds.set(ids, place * this.count);
    this.topLogprobs!.set(
      Float32Array.from(ids, (other) => logProbability(logits, other)),
      place * this.count,
    );
  }
}
