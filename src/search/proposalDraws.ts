/** @file Random draws of one proposal: a function of the seed and the number of the trial. */
import { foldIn, prngKey, threefry2x32 } from '../compiler/random/index.js';

/** Draws in sequence, determined by a seed and a number. */
export class Draws {
  readonly #key: ReturnType<typeof prngKey>;
  #count = 0;
  #spare: number | undefined;

  constructor(seed: number, number: number) {
    this.#key = foldIn(prngKey(seed), number);
  }

  /** A number from 0 to 1, without 1. */
  uniform(): number {
    const [high, low] = threefry2x32(this.#key, [0, this.#count++]);
    return (high * 2 ** 21 + (low >>> 11)) / 2 ** 53;
  }

  /** An integer from 0 to `bound` − 1. */
  below(bound: number): number {
    return Math.floor(this.uniform() * bound);
  }

  /** A normal number of mean 0 and deviation 1 (Box and Muller, 1958). */
  normal(): number {
    if (this.#spare !== undefined) {
      const spare = this.#spare;
      this.#spare = undefined;
      return spare;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** The place of a weight, each as likely as it is heavy. @param weights not negative, their sum positive. */
  weighted(weights: ArrayLike<number>): number {
    let total = 0;
    for (let i = 0; i < weights.length; i++) total += weights[i]!;
    let left = this.uniform() * total;
    for (let i = 0; i < weights.length - 1; i++) {
      left -= weights[i]!;
      if (left < 0) return i;
    }
    return weights.length - 1;
  }

  /** `count` different integers below `bound`, at most all of them. */
  sample(bound: number, count: number): number[] {
    const places = Array.from({ length: bound }, (_, i) => i);
    for (let i = 0; i < Math.min(count, bound); i++) {
      const j = i + this.below(bound - i);
      [places[i], places[j]] = [places[j]!, places[i]!];
    }
    return places.slice(0, count);
  }
}
