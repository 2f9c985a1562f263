/** @file Quantizers by a codebook: trained, as in VQ-VAE, and random, as in BEST-RQ (praxis/layers/quantizer.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { instance } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import { constantInit, Gaussian, UniformSqrtDim, WeightInit } from '../core/weightInit.js';
import { type Theta, WeightCollection } from '../core/weights.js';
import { l2Normalized } from '../normalizations.js';
import { StackingOverTime } from '../stackingOverTime.js';
import {
  type CodeStatistics,
  codeStatistics,
  lookUpCodes,
  nearestCodes,
  straightThrough,
} from './codebooks.js';

/** Vectors of a codebook in place of a sequence's. */
export interface QuantizedSequence extends CodeStatistics {
  /** [B, T, D]; 0 in padded places. */
  readonly zQ: Tensor;
  /** int32 [B, T, G]; 0 in padded places. */
  readonly zCodes: Tensor;
}

const codebookFields = {
  numLatentClasses: z.int().positive().describe('Vectors of the codebook.'),
  latentDim: z.int().positive().describe('Depth of the inputs.'),
  numGroups: z
    .int()
    .positive()
    .default(1)
    .describe('Parts of a vector, each of which has a code and a codebook.'),
  normalizeLatentPerGroup: z
    .boolean()
    .default(true)
    .describe('Whether normalizeLatentVector is for each group, not for whole vectors.'),
};

/** The mask of paddings [B, T], and [B, T, 1]. */
function masksOf(layer: BaseLayer, paddings: Tensor, shape: readonly number[]): [Tensor, Tensor] {
  const leading = shape.slice(0, 2);
  const kept = tf.broadcastTo(tf.cast(unpadded(layer, paddings, leading), 'int32'), leading);
  const isKept = tf.cast(kept, 'bool') as Tensor;
  return [isKept, tf.expandDims(isKept, -1)];
}

/** Vectors x [B, T, D], and their groups [B, T, G, H], one of which is normalised where a layer's fields say so. */
function latentsOf(
  x: Tensor,
  { numGroups, normalizeLatentVector, normalizeLatentPerGroup }: LatentFields,
): { readonly latent: Tensor; readonly grouped: Tensor } {
  const [batch, time, depth] = x.shape as [number, number, number];
  const ofVectors = normalizeLatentVector && !normalizeLatentPerGroup;
  const latent = ofVectors ? l2Normalized(x, [-1]) : x;
  const grouped = tf.reshape(latent, [batch, time, numGroups, depth / numGroups]) as Tensor;
  return { latent, grouped: normalizeLatentVector && !ofVectors ? l2Normalized(grouped, [-1]) : grouped };
}

type LatentFields = Readonly<
  Record<'normalizeLatentVector' | 'normalizeLatentPerGroup', boolean> & Record<'numGroups', number>
>;

/** Codes of the nearest vectors, int32 [B, T, G], 0 in padded places. @param each bool [B, T, 1] */
function codesOf(grouped: Tensor, codebook: Tensor, each: Tensor): Tensor {
  const nearest = nearestCodes(grouped, codebook);
  return tf.where(each, nearest, tf.zerosLike(nearest));
}

/**
 * The nearest vector of a trained codebook in place of each input; its gradient is that by the output, unchanged
 * (van den Oord et al., 2017, https://arxiv.org/abs/1711.00937). The loss |sg(z) - q|² + beta |z - sg(q)|², a mean over the
 * depth and the positions that are no padding, moves codebook and inputs to each other; the caller adds it to the model's. As in
 * Pax, it is of the inputs as they came where `normalizeLatentPerGroup` is set.
 */
export class VectorQuantizer extends BaseLayer.with({
  ...codebookFields,
  beta: z.number().nonnegative().describe('Weight of the commitment loss.'),
  normalizeLatentVector: z.boolean().default(true).describe('Whether inputs have norm 1 where compared.'),
  normalizeCodebook: z.boolean().default(true).describe('Whether vectors of the codebook have norm 1.'),
  paramsInit: instance(WeightInit, () => UniformSqrtDim.config()).describe('Initial values of the codebook.'),
}) {
  declare readonly theta: Theta<'w'>;

  protected override setup(): void {
    const { numLatentClasses, numGroups, latentDim } = this.hp;
    if (latentDim % numGroups !== 0)
      throw this.error(`latentDim: expected a multiple of numGroups ${numGroups}, got ${latentDim}.`);
    this.createVariable('w', {
      shape: [numLatentClasses, numGroups, latentDim / numGroups],
      init: this.paramsInit,
    });
  }

  /**
   * @param z [B, T, latentDim].
   * @param paddings [B, T], 1 for padding; none where absent.
   */
  fprop(
    z: Tensor,
    paddings: Tensor = tf.zeros(z.shape.slice(0, 2)),
  ): QuantizedSequence & { readonly loss: Tensor } {
    const { numLatentClasses, beta } = this.hp;
    const [kept, each] = masksOf(this, paddings, z.shape);
    const masked = selected(z, each);
    const { latent, grouped } = latentsOf(masked, this.hp);
    const codebook = this.#codebook();
    const zCodes = codesOf(grouped, codebook, each);
    const quantized = selected(lookUpCodes(zCodes, codebook), each);
    const frames = tf.add(tf.sum(tf.cast(kept, 'float32')), 1e-7);
    const distance = (a: Tensor, b: Tensor): Tensor =>
      tf.div(tf.sum(tf.mean(tf.square(tf.sub(a, ops.stopGradient(b))), -1)), frames);
    return {
      zQ: straightThrough(quantized, latent),
      zCodes,
      loss: tf.add(distance(quantized, latent), tf.mul(distance(latent, quantized), beta)),
      ...codeStatistics(zCodes, numLatentClasses, kept),
    };
  }

  /** The vectors [B, T, latentDim] of codes int32 [B, T, G]. */
  lookUp(zCodes: Tensor): Tensor {
    return lookUpCodes(zCodes, this.#codebook());
  }

  #codebook(): Tensor {
    return this.hp.normalizeCodebook ? l2Normalized(this.theta.w, [-1]) : this.theta.w;
  }
}

/**
 * The nearest vector of a random codebook to a random projection of each input; neither is trained, and no gradient passes.
 * The codes are labels of self-supervised learning (BEST-RQ, Chiu et al., 2022, https://arxiv.org/abs/2202.01855).
 */
export class RandomVectorQuantizer extends BaseLayer.with({
  ...codebookFields,
  projectionDim: z.int().positive().default(16).describe('D: depth of the projection, of all groups.'),
  stackRatio: z.int().positive().default(1).describe('Frames that are stacked into one before.'),
  codebookInit: instance(WeightInit, () => Gaussian.config()).describe('Initial values of the codebook.'),
  lowRankCodebook: z
    .boolean()
    .default(false)
    .describe('Whether the codebook of a single group is [classes, D], as in old checkpoints.'),
  normalizeLatentVector: z.boolean().default(false).describe('Whether projections have norm 1.'),
  normalizeCodebook: z.boolean().default(false).describe('Whether vectors of the codebook have norm 1.'),
}) {
  #stack: StackingOverTime | null = null;

  protected override setup(): void {
    const { hp } = this;
    const { latentDim, projectionDim, numLatentClasses, numGroups, stackRatio } = hp;
    if (projectionDim % numGroups !== 0)
      throw this.error(`projectionDim: expected a multiple of numGroups ${numGroups}, got ${projectionDim}.`);
    if (stackRatio > 1)
      this.#stack = this.createChild(
        'stack',
        StackingOverTime.config({
          rightContext: stackRatio - 1,
          stride: stackRatio,
          paddingReduceOption: 'reduce_max',
        }),
      );
    const collections = [WeightCollection.NON_TRAINABLE];
    this.createVariable('random_proj', { shape: [latentDim * stackRatio, projectionDim], collections });
    this.createVariable('random_bias', { shape: [projectionDim], init: constantInit(0), collections });
    const isFlat = hp.lowRankCodebook && numGroups === 1;
    this.createVariable('random_codebook', {
      shape: [numLatentClasses, ...(isFlat ? [] : [numGroups]), projectionDim / numGroups],
      init: hp.codebookInit,
      collections,
    });
  }

  /**
   * @param z [B, T, latentDim].
   * @param paddings [B, T], 1 for padding; none where absent.
   * @returns of T / stackRatio frames, with their paddings; a stack is padding where any of its frames is. Vectors and codes of
   *   padding are 0.
   */
  fprop(
    z: Tensor,
    paddings: Tensor = tf.zeros(z.shape.slice(0, 2)),
  ): QuantizedSequence & { readonly paddings: Tensor } {
    const { numLatentClasses } = this.hp;
    const frames = this.#stack?.fprop(z, paddings) ?? { outputs: z, paddings };
    const [kept, each] = masksOf(this, frames.paddings, frames.outputs.shape);
    const [batch, time, depth] = frames.outputs.shape as [number, number, number];
    const flat = tf.reshape(selected(frames.outputs, each), [batch * time, depth]);
    const rows = tf.add(tf.matMul(flat as Tensor, this.getVar('random_proj')), this.getVar('random_bias'));
    const projected = tf.reshape(rows, [batch, time, this.hp.projectionDim]) as Tensor;
    const { grouped } = latentsOf(projected, this.hp);
    const zCodes = codesOf(this.shard(grouped, 'blgh'), this.#codebook(), each);
    return {
      zQ: selected(this.lookUp(zCodes), each),
      zCodes,
      paddings: frames.paddings,
      ...codeStatistics(zCodes, numLatentClasses, kept),
    };
  }

  /** The vectors [B, T, projectionDim] of codes int32 [B, T, G]. */
  lookUp(zCodes: Tensor): Tensor {
    return ops.stopGradient(lookUpCodes(zCodes, this.#codebook()));
  }

  #codebook(): Tensor {
    const { numLatentClasses, numGroups, projectionDim, normalizeCodebook } = this.hp;
    const shape = [numLatentClasses, numGroups, projectionDim / numGroups];
    const codebook = tf.reshape(this.getVar('random_codebook'), shape) as Tensor;
    return normalizeCodebook ? l2Normalized(codebook, [-1]) : codebook;
  }
}
