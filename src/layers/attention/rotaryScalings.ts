/** @file Rules that slow rotations down for texts longer than those of the training. */
import { z } from 'zod';
import { type Config, Configurable, type Report } from '../../hparams/index.js';

/** Rotations of pairs of elements. */
export interface Rotations {
  /** Radians a position, by pair; each is 1 / `ratio`^(1 / pairs) of the one before. */
  readonly frequencies: Float32Array;
  /** Longest over shortest wavelength, if there were one pair more. */
  readonly ratio: number;
  /** Factor on rotated queries and keys. */
  readonly amplitude: number;
}

const originalMaxSeqLengthField = z
  .int()
  .positive()
  .default(8192)
  .describe('Longest sequence of the training with unscaled rotations.');

/** Base of the rules: rotations in place of those without scaling. */
export abstract class BaseRotaryScaling extends Configurable.with({
  factor: z
    .number()
    .min(1)
    .default(1)
    .describe('How many times longer texts are, and what divides frequencies.'),
}) {
  static override readonly isAbstract = true;
  abstract scaled(rotations: Rotations): Rotations;
}

/** All rotations are slower by `factor`, as if positions were divided by it (Chen et al., 2023). */
export class LinearRotaryScaling extends BaseRotaryScaling {
  override scaled(rotations: Rotations): Rotations {
    return { ...rotations, frequencies: rotations.frequencies.map((x) => x / this.hp.factor) };
  }
}

/**
 * Slow rotations are slower by `factor`, fast ones stay, by a larger base of the wavelengths ("NTK-aware"), which grows with
 * the length of the text. Here it is that of `seqLength` throughout, so that keys in a cache and later queries agree;
 * transformers takes the length so far, and rotates earlier keys otherwise than later ones.
 */
export class DynamicNtkRotaryScaling extends BaseRotaryScaling.with({
  originalMaxSeqLength: originalMaxSeqLengthField,
  seqLength: z
    .int()
    .positive()
    .describe('Longest sequence that is computed; up to originalMaxSeqLength nothing is scaled.'),
}) {
  override scaled(rotations: Rotations): Rotations {
    const { factor, originalMaxSeqLength, seqLength } = this.hp;
    const pairs = rotations.frequencies.length;
    const longer = Math.max(seqLength / originalMaxSeqLength, 1);
    // The slowest rotation is slower by this factor.
    const slowest = factor * longer - (factor - 1);
    const slower = (i: number): number => (pairs === 1 ? 1 : slowest ** (-i / (pairs - 1)));
    return { ...rotations, frequencies: rotations.frequencies.map((x, i) => x * slower(i)) };
  }
}

/**
 * Llama 3.1's rule: slow rotations, with wavelengths above originalMaxSeqLength / lowFrequencyFactor, are slower by `factor`;
 * fast ones, below originalMaxSeqLength / highFrequencyFactor, stay; those between are interpolated.
 */
export class Llama3RotaryScaling extends BaseRotaryScaling.with({
  factor: z.number().positive().default(8).describe('Divides the frequencies of slow rotations.'),
  lowFrequencyFactor: z.number().positive().default(1).describe('Slow rotations turn less often than this …'),
  highFrequencyFactor: z
    .number()
    .positive()
    .default(4)
    .describe('… and fast ones more often than this, over originalMaxSeqLength tokens.'),
  originalMaxSeqLength: originalMaxSeqLengthField,
}) {
  static override validate(
    { lowFrequencyFactor, highFrequencyFactor }: Config<Llama3RotaryScaling>,
    report: Report,
  ): void {
    if (highFrequencyFactor > lowFrequencyFactor) return;
    report(`expected more than lowFrequencyFactor (${lowFrequencyFactor})`, 'highFrequencyFactor');
  }

  override scaled(rotations: Rotations): Rotations {
    const { factor, lowFrequencyFactor, highFrequencyFactor, originalMaxSeqLength } = this.hp;
    const frequencies = rotations.frequencies.map((frequency) => {
      const turns = (originalMaxSeqLength * frequency) / (2 * Math.PI);
      const share = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
      const kept = Math.min(Math.max(share, 0), 1);
      return frequency * ((1 - kept) / factor + kept);
    });
    return { ...rotations, frequencies };
  }
}

/** ln-scaled growth of attention's logits with the length of texts; 1 for texts that are not longer. */
const growth = (factor: number, weight: number): number => 0.1 * weight * Math.log(factor) + 1;

/**
 * YaRN (Peng et al., 2023): rotations that turn fewer than `betaSlow` times over originalMaxSeqLength tokens are slower by
 * `factor`, those that turn more than `betaFast` times stay, and between them the share falls linearly with the number of
 * the pair. Rotated vectors have a factor, so that attention is as sharp over long texts.
 */
export class YarnRotaryScaling extends BaseRotaryScaling.with({
  originalMaxSeqLength: originalMaxSeqLengthField,
  betaFast: z.number().positive().default(32).describe('Turns from which on rotations stay.'),
  betaSlow: z.number().positive().default(1).describe('Turns up to which rotations are slower by factor.'),
  attentionFactor: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe('Factor on rotated queries and keys; null: 0.1 ln(factor) + 1, or by mscale and mscaleAllDim.'),
  mscale: z
    .number()
    .nonnegative()
    .default(0)
    .describe("Weight of ln(factor) in the factor's numerator (DeepSeek)."),
  mscaleAllDim: z
    .number()
    .nonnegative()
    .default(0)
    .describe('… and in its denominator; where one is 0, neither counts.'),
  truncate: z
    .boolean()
    .default(true)
    .describe('Whether the numbers of the pairs between are rounded outwards.'),
}) {
  static override validate({ betaFast, betaSlow }: Config<YarnRotaryScaling>, report: Report): void {
    if (betaFast < betaSlow) report(`expected betaSlow (${betaSlow}) or more`, 'betaFast');
  }

  override scaled({ frequencies, ratio, amplitude }: Rotations): Rotations {
    const { factor, originalMaxSeqLength, betaFast, betaSlow, truncate } = this.hp;
    const pairs = frequencies.length;
    /** Number of the pair that turns so often; a fraction. */
    const pairOf = (turns: number): number =>
      (pairs * Math.log((originalMaxSeqLength * frequencies[0]!) / (turns * 2 * Math.PI))) / Math.log(ratio);
    const [from, to] = [pairOf(betaFast), pairOf(betaSlow)];
    const first = Math.max(truncate ? Math.floor(from) : from, 0);
    const last = Math.min(truncate ? Math.ceil(to) : to, 2 * pairs - 1);
    const width = last === first ? 1e-3 : last - first;
    return {
      ratio,
      amplitude: amplitude * this.#amplitude(),
      frequencies: frequencies.map((frequency, i) => {
        const slowed = Math.min(Math.max((i - first) / width, 0), 1);
        return frequency * (slowed / factor + 1 - slowed);
      }),
    };
  }

  #amplitude(): number {
    const { factor, attentionFactor, mscale, mscaleAllDim } = this.hp;
    if (attentionFactor !== null) return attentionFactor;
    if (mscale > 0 && mscaleAllDim > 0) return growth(factor, mscale) / growth(factor, mscaleAllDim);
    return growth(factor, 1);
  }
}
