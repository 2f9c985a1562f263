/** @file Mixtures of two examples: Mixup and CutMix. */
import { z } from 'zod';
import { Configurable } from '../../../hparams/index.js';
import type { ExampleDraws } from '../../seqio/exampleDraws.js';
import type { ImageSize } from '../rawImage.js';

/** Pixels of an example, [height, width, channels]. */
type Pixels = Float32Array;

/** Base of mixtures of an example with another, which is drawn as well. Labels are mixed in the same proportion. */
export abstract class BaseMixing extends Configurable.with({
  probability: z.number().min(0).max(1).default(1).describe('Share of the examples that are mixed.'),
  alpha: z
    .number()
    .min(0.05)
    .max(4)
    .default(1)
    .describe("The example's share is drawn from the distribution Beta(alpha, alpha); 1 is uniform."),
}) {
  static override readonly isAbstract = true;

  /** Mixes `other` into `pixels`, and returns the remaining share of `pixels`, from 0 to 1. */
  abstract mix(pixels: Pixels, other: Pixels, draws: ExampleDraws, size: ImageSize): number;

  /** A draw of Beta(alpha, alpha), by Jöhnk's method. */
  protected share(draws: ExampleDraws): number {
    for (;;) {
      const [a, b] = [
        (1 - draws.uniform()) ** (1 / this.hp.alpha),
        (1 - draws.uniform()) ** (1 / this.hp.alpha),
      ];
      if (a + b <= 1) return a / (a + b);
    }
  }
}

/** The weighted mean of two images (Zhang et al., "mixup: Beyond empirical risk minimization", 2017). */
export class Mixup extends BaseMixing {
  override mix(pixels: Pixels, other: Pixels, draws: ExampleDraws): number {
    const share = this.share(draws);
    for (let i = 0; i < pixels.length; i++) pixels[i] = share * pixels[i]! + (1 - share) * other[i]!;
    return share;
  }
}

/** An image with a box of another (Yun et al., "CutMix", 2019). */
export class CutMix extends BaseMixing {
  override mix(pixels: Pixels, other: Pixels, draws: ExampleDraws, { height, width }: ImageSize): number {
    const side = Math.sqrt(1 - this.share(draws)) / 2;
    /** Start and end of the box along a dimension: cut off at the border, about a random place. */
    const span = (size: number): readonly [number, number] => {
      const [middle, half] = [draws.below(size), Math.floor(side * size)];
      return [Math.max(0, middle - half), Math.min(size, middle + half)];
    };
    const [[left, right], [top, bottom]] = [span(width), span(height)];
    const channels = pixels.length / (height * width);
    for (let y = top; y < bottom; y++) {
      const [start, end] = [(y * width + left) * channels, (y * width + right) * channels];
      pixels.set(other.subarray(start, end), start);
    }
    return 1 - ((right - left) * (bottom - top)) / (height * width);
  }
}
