/** @file Losses of video autoencoders that are trained against a discriminator (praxis/layers/video/losses.py). */
import { z } from 'zod';
import { sizeOf, type Tensor, tf, valueAndGrad } from '../../compiler/index.js';
import { softplus } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { selected, weighedRows } from '../core/masks.js';
import { constantInit } from '../core/weightInit.js';
import { WeightCollection } from '../core/weights.js';

/**
 * Gradient penalty of a discriminator on real examples (R1, Mescheder et al., 2018): cost · |∂ Σ logits / ∂ inputs|². Its own
 * gradient is one of second order.
 *
 * @param inputs [B, ...].
 * @param logitsOf the discriminator, each of whose logits depends on its example alone.
 * @returns its logits, and the penalty [B] of each example.
 */
export function r1GradientPenalty(
  inputs: Tensor,
  logitsOf: (inputs: Tensor) => Tensor,
  gradPenaltyCost = 10,
): { readonly logits: Tensor; readonly penalty: Tensor } {
  const summed = (x: Tensor) => ({ value: tf.sum(logitsOf(x)), aux: {} });
  const { grads } = valueAndGrad(summed, inputs);
  const [rows, ...rest] = inputs.shape;
  const squares = tf.reshape(tf.square(grads), [rows!, sizeOf(rest)]);
  // A program computes the logits once.
  return { logits: logitsOf(inputs), penalty: tf.mul(tf.sum(squares, 1), gradPenaltyCost) };
}

/** What an autoencoder and its discriminator make of a batch. */
export interface VQGANPredictions {
  /** Videos, of the shape of the originals. */
  readonly reconstructed: Tensor;
  /** Logits [B, 1] of the originals. */
  readonly logitsReal: Tensor;
  /** Logits [B, 1] of the reconstructed videos. */
  readonly logitsFake: Tensor;
  /** As {@link r1GradientPenalty} gives it for the originals, [B]. */
  readonly r1GradientPenalty: Tensor;
  /** Scalar, as a quantizer gives it. */
  readonly quantizerLoss: Tensor;
}

/** Scalars. */
export interface VQGANLosses {
  readonly gradPenalty: Tensor;
  readonly lecamLoss: Tensor;
  readonly dAdversarialLoss: Tensor;
  readonly gAdversarialLoss: Tensor;
  readonly reconstructionLoss: Tensor;
  readonly quantizerLoss: Tensor;
  /** The discriminator's: the first three. */
  readonly dLoss: Tensor;
  /** The autoencoder's: the others. */
  readonly gLoss: Tensor;
}

const collections = [WeightCollection.NON_TRAINABLE];
const mean = { shape: [], init: constantInit(0), collections };

/**
 * Losses of VQ-GAN: non-saturating adversarial ones (Goodfellow et al., 2014), squared errors, and LeCam (Tseng et al., 2021),
 * which holds logits to running means of the other side's: `E relu(real - mean fake)² + E relu(mean real - fake)²`. Means leave
 * out rows of weight 0. The quantizer's loss is 0 in evaluation.
 */
export class VQGANLoss extends BaseLayer.with({
  gAdversarialLossWeight: z.number().default(0.1).describe("Weight of the autoencoder's adversarial loss."),
  reconstructionLossWeight: z.number().default(5).describe('Weight of the squared errors.'),
  polyakDecay: z
    .number()
    .min(0)
    .max(1)
    .default(0.999)
    .describe('Share of the running means that a step keeps.'),
  lecamWeight: z.number().default(0.001).describe('Weight of LeCam.'),
}) {
  protected override setup(): void {
    this.createVariable('ema_real_pred', mean);
    this.createVariable('ema_fake_pred', mean);
  }

  /** @param video the originals [B, T, H, W, D]. @throws LayerError where those of the predictions have another shape */
  fprop(predictions: VQGANPredictions, video: Tensor): VQGANLosses {
    const { hp } = this;
    const { reconstructed, logitsReal, logitsFake } = predictions;
    if (reconstructed.shape.join() !== video.shape.join())
      throw this.error(
        `expected videos [${video.shape.join(', ')}], got [${reconstructed.shape.join(', ')}].`,
      );
    const gradPenalty = this.#mean(predictions.r1GradientPenalty);
    const lecamLoss = tf.mul(this.#lecam(logitsReal, logitsFake), hp.lecamWeight);
    const softplusMean = (x: Tensor): Tensor => this.#mean(softplus(x));
    const dAdversarialLoss = tf.add(softplusMean(tf.neg(logitsReal)), softplusMean(logitsFake));
    const gAdversarialLoss = tf.mul(softplusMean(tf.neg(logitsFake)), hp.gAdversarialLossWeight);
    const errors = this.#mean(tf.squaredDifference(video, reconstructed));
    const reconstructionLoss = tf.mul(errors, hp.reconstructionLossWeight);
    const quantizerLoss = this.doEval ? tf.scalar(0) : predictions.quantizerLoss;
    const dLoss = tf.addN([dAdversarialLoss, gradPenalty, lecamLoss]);
    const gLoss = tf.addN([reconstructionLoss, gAdversarialLoss, quantizerLoss]);
    const ofDiscriminator = { gradPenalty, lecamLoss, dAdversarialLoss, dLoss };
    return { ...ofDiscriminator, gAdversarialLoss, reconstructionLoss, quantizerLoss, gLoss };
  }

  #lecam(real: Tensor, fake: Tensor): Tensor {
    const [meanReal, meanFake] = [this.#moved('ema_real_pred', real), this.#moved('ema_fake_pred', fake)];
    const excess = (a: Tensor, b: Tensor): Tensor => this.#mean(tf.square(tf.relu(tf.sub(a, b))));
    return tf.add(excess(real, meanFake), excess(meanReal, fake));
  }

  /** A running mean, after this batch's logits. */
  #moved(name: 'ema_real_pred' | 'ema_fake_pred', logits: Tensor): Tensor {
    const { polyakDecay } = this.hp;
    const moved = tf.add(tf.mul(this.getVar(name), polyakDecay), tf.mul(this.#mean(logits), 1 - polyakDecay));
    this.updateVar(name, moved);
    return moved;
  }

  /** Mean over the elements of all examples that count. */
  #mean(x: Tensor): Tensor {
    const rows = weighedRows(this, x);
    if (!rows) return tf.div(tf.sum(x), Math.max(1, x.size));
    const count = tf.mul(tf.sum(tf.cast(rows, 'float32')), sizeOf(x.shape.slice(1)));
    return tf.div(tf.sum(selected(x, rows)), tf.maximum(count, 1));
  }
}
