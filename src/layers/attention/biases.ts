/** @file Biases of attention's logits by the distance of query and key: T5's buckets, ALiBi (praxis/layers/attentions.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { build } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { Gaussian, Xavier } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import type { OfBoth } from './visibility.js';

const int = (value: number): Tensor => tf.scalar(value, 'int32');

/** Positions of queries less those of keys, int32 [B, T, S]; B may be 1. */
export const distancesOf = ({ queries, keys }: OfBoth): Tensor =>
  tf.sub(tf.expandDims(queries, 2), tf.expandDims(keys, 1));

/** Rows of a trained table [size, N] at `indices` [B, T, S], as a bias [B, N, T, S]. */
export const biasAt = (table: Tensor, indices: Tensor): Tensor =>
  tf.transpose(ops.embeddingLookup(table, indices), [0, 3, 1, 2]);

/** Base of the biases of logits, for each head, by the positions of queries and keys. */
export abstract class BasePositionBias extends BaseLayer.with({
  numHeads: z.int().positive().describe('Number of heads N.'),
}) {
  static override readonly isAbstract = true;

  /** The bias of positions [B, T] and [B, S]: float32 [B, N, T, S]. */
  abstract fprop(positions: OfBoth): Tensor;
}

/**
 * A trained number for each head and bucket of distances (T5, Raffel et al., 2020): half of the buckets are of one distance
 * each, the others grow geometrically up to `relativeAttentionMaxDistance`; the last one has all that is farther.
 */
export class RelativeBias extends BasePositionBias.with({
  relativeAttentionNumBuckets: z.int().min(2).default(32).describe('Number of buckets.'),
  relativeAttentionMaxDistance: z.int().positive().default(128).describe('Where the last bucket begins.'),
  bidirectional: z
    .boolean()
    .default(false)
    .describe(
      'Half of the buckets are for keys behind the query; else these share the bucket of distance 0.',
    ),
  useXavierInit: z
    .boolean()
    .default(false)
    .describe('Xavier, in place of a deviation of 1 / sqrt(N buckets).'),
}) {
  declare readonly theta: Theta<'wrb'>;

  protected override setup(): void {
    const {
      numHeads,
      relativeAttentionNumBuckets: buckets,
      relativeAttentionMaxDistance,
      useXavierInit,
    } = this.hp;
    if (this.#exact < 1 || relativeAttentionMaxDistance <= this.#exact)
      throw this.error(
        `relativeAttentionMaxDistance ${relativeAttentionMaxDistance} is within the ${this.#exact} buckets of one distance each ` +
          `that ${buckets} buckets have; expected more distance, or at least ${this.hp.bidirectional ? 4 : 2} buckets.`,
      );
    const init = build(
      useXavierInit ? Xavier.config() : Gaussian.config({ scale: (numHeads * buckets) ** -0.5 }),
    );
    this.createVariable('wrb', { shape: [numHeads, buckets], init });
  }

  /** Buckets of one direction. */
  get #buckets(): number {
    const { relativeAttentionNumBuckets, bidirectional } = this.hp;
    return bidirectional ? Math.floor(relativeAttentionNumBuckets / 2) : relativeAttentionNumBuckets;
  }

  /** Those of one distance each. */
  get #exact(): number {
    return Math.floor(this.#buckets / 2);
  }

  /** The bucket of a distance of 0 or more, in the float32 arithmetic of the models that are trained so. */
  #bucketOf(distance: number): number {
    const [buckets, exact, { fround, log }] = [this.#buckets, this.#exact, Math];
    if (distance < exact) return distance;
    const share = fround(
      fround(log(fround(distance / exact))) / fround(log(this.hp.relativeAttentionMaxDistance / exact)),
    );
    return Math.min(exact + Math.trunc(fround(share * (buckets - exact))), buckets - 1);
  }

  override fprop(positions: OfBoth): Tensor {
    const { relativeAttentionMaxDistance: most, bidirectional } = this.hp;
    const least = bidirectional ? -most : 0;
    const table = Int32Array.from({ length: most - least + 1 }, (_, i) => {
      const distance = i + least;
      return this.#bucketOf(Math.abs(distance)) + (distance < 0 ? this.#buckets : 0);
    });
    const place = tf.sub(tf.clipByValue(distancesOf(positions), least, most), int(least));
    const bucket = tf.gather(tf.tensor1d(table, 'int32'), tf.cast(place, 'int32'));
    return biasAt(tf.transpose(this.theta.wrb), bucket);
  }
}

/**
 * Logits fall linearly with distance, by a slope for each head that is not trained (ALiBi, Press et al., 2022): for a power of
 * two of heads 2^(-8 / N), its square, and so on; further heads take every second slope of twice as many.
 */
export class Alibi extends BasePositionBias.with({
  bidirectional: z
    .boolean()
    .default(false)
    .describe('Logits fall with distance on both sides; else they rise behind the query, as in Pax.'),
}) {
  /** The slope of each head. */
  slopes(): number[] {
    const { numHeads } = this.hp;
    const powers = (count: number, step: number): number[] =>
      Array.from({ length: count }, (_, i) => 2 ** (-step * (i + 1)));
    const whole = 2 ** Math.floor(Math.log2(numHeads));
    const between = powers(2 * (numHeads - whole), 4 / whole).filter((_, i) => i % 2 === 0);
    return [...powers(whole, 8 / whole), ...between];
  }

  override fprop(positions: OfBoth): Tensor {
    const distance = tf.cast(distancesOf(positions), 'float32');
    const far = this.hp.bidirectional ? tf.abs(distance) : distance;
    const slopes = tf.tensor4d(this.slopes(), [1, this.hp.numHeads, 1, 1]);
    return tf.neg(tf.mul(slopes, tf.expandDims(far, 1)));
  }
}
