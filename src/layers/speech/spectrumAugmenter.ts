/** @file SpecAugment: spectra without random bands of time and of frequency (praxis/layers/spectrum_augmenter.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';

/** Lengths and number of the bands of an axis. */
interface Bands {
  /** Places of the axis. */
  readonly size: number;
  /** float32 [B, 1]: the first places, among which each band lies. */
  readonly range: Tensor;
  /** Bounds a drawn length; null: maxRatio · range. */
  readonly maxLength: number | null;
  /** Share of the range that a band covers at most; a band of one place is allowed whatever it is. */
  readonly maxRatio: number;
  readonly count: number;
  /** Where above 0, a range has no more than this times its length of the bands. */
  readonly perPlace: number;
}

/**
 * Sets bands of time and of frequency to 0 (SpecAugment, Park et al., 2019; bands by length, Park et al., 2020). The identity
 * in evaluation.
 */
export class SpectrumAugmenter extends BaseLayer.with({
  freqMaskMaxBins: z.int().nonnegative().default(27).describe('Longest band of frequency, in bins; 0: none.'),
  freqMaskCount: z.int().nonnegative().default(2).describe('Bands of frequency.'),
  useDynamicTimeMaskMaxFrames: z
    .boolean()
    .default(true)
    .describe('Whether timeMaskMaxRatio alone bounds a band of time, without timeMaskMaxFrames.'),
  timeMaskMaxFrames: z.int().nonnegative().default(40).describe('Longest band of time, in frames; 0: none.'),
  timeMaskCount: z.int().nonnegative().default(10).describe('Bands of time; at most so many of them.'),
  timeMaskMaxRatio: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe("Largest share of a sequence's frames that a band of time covers; 0: no bands."),
  timeMasksPerFrame: z
    .number()
    .nonnegative()
    .default(0)
    .describe('Bands of time for each frame of a sequence, up to timeMaskCount; 0: timeMaskCount of them.'),
  augmentAtEval: z.boolean().default(false).describe('Whether evaluation has bands as well.'),
}) {
  /**
   * Spectra [B, T, F] to the same shape; bands of time lie among the frames that are no padding.
   *
   * @param paddings [B, T], 1 for padding, which stands behind the frames of a sequence. Either size may be 1.
   * @throws LayerError for inputs or paddings of another shape
   */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    if (inputs.rank !== 3) throw this.error(`expected spectra [B, T, F], got [${inputs.shape.join(', ')}].`);
    const [batch, time, bins] = inputs.shape as [number, number, number];
    const kept = paddings && unpadded(this, paddings, [batch, time]);
    if (this.doEval && !this.hp.augmentAtEval) return inputs;
    const frames = kept ? tf.broadcastTo(tf.cast(kept, 'float32'), [batch, time]) : tf.ones([batch, time]);
    const hidden = [
      this.#timeBands(tf.sum(frames, 1, true), time),
      this.#frequencyBands(tf.fill([batch, 1], bins), bins),
    ];
    return hidden.reduce<Tensor>((x, bands, i) => {
      return bands ? selected(x, tf.logicalNot(tf.expandDims(bands, 2 - i))) : x;
    }, inputs);
  }

  #timeBands(range: Tensor, size: number): Tensor | null {
    const { hp } = this;
    const maxLength = hp.useDynamicTimeMaskMaxFrames ? null : hp.timeMaskMaxFrames;
    if (maxLength === 0 || hp.timeMaskMaxRatio === 0 || hp.timeMaskCount === 0) return null;
    return this.#bands({
      ...{ size, range, maxLength },
      ...{ maxRatio: hp.timeMaskMaxRatio, count: hp.timeMaskCount, perPlace: hp.timeMasksPerFrame },
    });
  }

  #frequencyBands(range: Tensor, size: number): Tensor | null {
    const { freqMaskMaxBins: maxLength, freqMaskCount: count } = this.hp;
    if (maxLength === 0 || count === 0) return null;
    return this.#bands({ size, range, maxLength, maxRatio: 1, count, perPlace: 0 });
  }

  /** Places in a band, bool [B, size]. */
  #bands({ size, range, maxLength, maxRatio, count, perPlace }: Bands): Tensor {
    const draws = [range.shape[0]!, count];
    const allowed = tf.mul(range, maxRatio);
    const drawn = tf.mul(ops.randomUniform(this.nextPrngKey(), draws), maxLength ?? allowed);
    const length = tf.minimum(tf.floor(drawn), tf.maximum(tf.floor(allowed), 1));
    const places = tf.add(tf.sub(range, length), 1);
    const start = tf.floor(tf.mul(ops.randomUniform(this.nextPrngKey(), draws), places));
    const isUsed = perPlace > 0 ? tf.less(tf.range(0, count), tf.mul(range, perPlace)) : null;
    const end = tf.add(start, isUsed ? selected(length, isUsed) : length);
    const place = tf.range(0, size);
    const isIn = tf.logicalAnd(
      tf.greaterEqual(place, tf.expandDims(start, -1)),
      tf.less(place, tf.expandDims(end, -1)),
    );
    return tf.any(isIn, 1);
  }
}
