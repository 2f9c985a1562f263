/** @file Random numbers of one example: a stream that its key alone decides. */
import { type PrngKey, threefry2x32 } from '../../compiler/random/index.js';
import { drawBelow } from '../random.js';

/** Draws of a stream, one after the other. */
export class ExampleDraws {
  #drawn = 0;

  constructor(private readonly key: PrngKey) {}

  /** An integer, uniform in [0, bound). */
  below(bound: number): number {
    return drawBelow(this.key, this.#drawn++, bound);
  }

  /** A number, uniform in [0, 1). */
  uniform(): number {
    const [high] = threefry2x32(this.key, [0, this.#drawn++]);
    return high / 2 ** 32;
  }

  /** Shuffles in place (Fisher-Yates). */
  shuffle(values: { [index: number]: number; readonly length: number }): void {
    for (let i = values.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const value = values[i]!;
      values[i] = values[j]!;
      values[j] = value;
    }
  }
}
