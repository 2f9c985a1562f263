/** @file Quantizers without a codebook: signs, and rounded numbers, whose digits make a code (praxis/layers/video/quantizer.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { straightThrough } from './codebooks.js';

/** Largest power of two that an int32 code counts to. */
const MAX_BITS = 30;

const int = (x: number): Tensor => tf.scalar(x, 'int32');

/** Σ digit · stride over the last axis: int32 [...] of int32 [..., D]. */
function codeOf(digits: Tensor, strides: readonly number[]): Tensor {
  const terms = tf.unstack(digits, -1).map((digit, i) => tf.mul(digit, int(strides[i]!)) as Tensor);
  return terms.reduce((sum, term) => tf.add(sum, term));
}

/**
 * Rounds each element, bounded by a sine or tanh, to one of a few numbers around 0; the gradient is that of the bounded one
 * (finite scalar quantization, Mentzer et al., 2023). An even number of values is odd multiples of 1/2.
 */
export class ScalarQuantizer extends BaseLayer.with({
  dimWidths: z
    .array(z.int().min(2))
    .min(1)
    .default([8, 8, 4, 4, 4, 4, 4, 4])
    .describe('Values of each element of a vector.'),
  boundMethod: z.enum(['sine', 'tanh']).default('sine').describe('Function that bounds elements.'),
  eps: z.number().min(0).lt(1).default(1e-3).describe('Share of the range that is left out at its ends.'),
}) {
  protected override setup(): void {
    const codes = this.hp.dimWidths.reduce((a, b) => a * b, 1);
    if (codes > 2 ** MAX_BITS)
      throw this.error(`dimWidths: expected at most 2^${MAX_BITS} codes, got ${codes}.`);
  }

  /**
   * @param inputs [..., D], D being the number of `dimWidths`.
   * @returns numbers of the same shape: `raw` before they are rounded, and their codes int32 [...].
   */
  fprop(inputs: Tensor): {
    readonly quantized: Tensor;
    readonly raw: Tensor;
    readonly encodingIndices: Tensor;
  } {
    const { dimWidths, boundMethod, eps } = this.hp;
    if (inputs.shape.at(-1) !== dimWidths.length)
      throw this.error(
        `expected inputs [..., ${dimWidths.length}] for dimWidths, got [${inputs.shape.join(', ')}].`,
      );
    const bounded = boundMethod === 'sine' ? tf.sin(inputs) : tf.tanh(inputs);
    const raw = tf.mul(bounded, tf.tensor1d(dimWidths.map((width) => (width * (1 - eps)) / 2))) as Tensor;
    // Digits 0 to width - 1; without an offset the middle of an even number of values lies between two.
    const middle = this.#middles();
    const digits = tf.round(tf.add(raw, middle)) as Tensor;
    const within = tf.minimum(tf.maximum(digits, 0), tf.tensor1d(dimWidths.map((width) => width - 1)));
    const values = tf.sub(within, middle) as Tensor;
    return {
      quantized: this.doEval ? values : straightThrough(values, raw),
      raw,
      encodingIndices: codeOf(tf.cast(within, 'int32'), this.#strides()),
    };
  }

  /** The numbers [..., D] of codes int32 [...]. */
  decodeIds(ids: Tensor): Tensor {
    const { dimWidths } = this.hp;
    const strides = this.#strides();
    const digits = dimWidths.map((width, i) => tf.mod(tf.floorDiv(ids, int(strides[i]!)), int(width)));
    return tf.sub(tf.cast(tf.stack(digits, -1), 'float32'), this.#middles());
  }

  #middles(): Tensor {
    return tf.tensor1d(this.hp.dimWidths.map((width) => (width - 1) / 2));
  }

  /** The last element's digit counts 1. */
  #strides(): number[] {
    const { dimWidths } = this.hp;
    return dimWidths.map((_, i) => dimWidths.slice(i + 1).reduce((a, b) => a * b, 1));
  }
}

/** Logarithms of the codes' probabilities, [N, groups, 2^size], of those of signs, [N, groups, size, 2]. */
function jointLogs(logs: Tensor): Tensor {
  const [rows, groups] = logs.shape as [number, number];
  const both = (joint: Tensor, each: Tensor): Tensor =>
    tf.reshape(tf.add(tf.expandDims(joint, -1), tf.expandDims(each, 2)), [rows, groups, 2 * joint.shape[2]!]);
  return tf.unstack(logs, 2).reduce(both);
}

/**
 * The sign of each element, -1 or 1, with the gradient of the element (MAGVIT-v2, Yu et al., 2023). Two losses: the commitment,
 * and the entropy of each vector's code, to be small, less that of the codes' mean, to be large; both are of the soft
 * assignment by 2 x · code / temperature. The caller adds them to the model's.
 */
export class LookupFreeQuantizer extends BaseLayer.with({
  embeddingDim: z.int().positive().default(8).describe('Elements of a vector.'),
  numTokenGroups: z.int().positive().default(1).describe('Codes of a vector.'),
  entropyLossRatio: z.number().nonnegative().default(0.1).describe('Weight of the entropy loss.'),
  commitmentCost: z.number().nonnegative().default(0.25).describe('Weight of the commitment loss.'),
  entropyLossGroups: z
    .int()
    .positive()
    .default(1)
    .describe(
      "Parts of a vector whose codes' mean has an entropy of its own: there are 2^size codes of each.",
    ),
  entropyLossType: z
    .enum(['softmax', 'argmax'])
    .default('softmax')
    .describe('Whether the entropy is of probabilities, or of the likeliest code with their gradient.'),
  entropyTemperature: z.number().positive().default(0.01),
  entropyLossBalance: z.number().nonnegative().default(1).describe("Weight of the mean's entropy."),
}) {
  protected override setup(): void {
    const { embeddingDim, numTokenGroups, entropyLossGroups, entropyLossType } = this.hp;
    const bits = this.#groupSize;
    if (numTokenGroups > embeddingDim || bits > MAX_BITS)
      throw this.error(
        `numTokenGroups: expected parts of 1 to ${MAX_BITS} of embeddingDim ${embeddingDim}, got ${numTokenGroups}.`,
      );
    if (embeddingDim % entropyLossGroups !== 0)
      throw this.error(
        `embeddingDim: expected a multiple of entropyLossGroups ${entropyLossGroups}, got ${embeddingDim}.`,
      );
    if (entropyLossGroups > 1 && entropyLossType === 'argmax')
      throw this.error("entropyLossType: expected 'softmax' for several entropyLossGroups, got 'argmax'.");
  }

  get #groupSize(): number {
    return Math.ceil(this.hp.embeddingDim / this.hp.numTokenGroups);
  }

  /**
   * @param inputs [..., embeddingDim].
   * @returns signs of that shape; codes int32 [...], or [..., groups] where there are several; scalar losses, 0 for no
   *   vectors.
   */
  fprop(inputs: Tensor): {
    readonly quantized: Tensor;
    readonly encodingIndices: Tensor;
    readonly eLatentLoss: Tensor;
    readonly entropyLoss: Tensor;
    readonly quantizerLoss: Tensor;
  } {
    const { embeddingDim, commitmentCost, entropyLossRatio } = this.hp;
    if (inputs.shape.at(-1) !== embeddingDim)
      throw this.error(`expected inputs [..., ${embeddingDim}], got [${inputs.shape.join(', ')}].`);
    const isPositive = tf.greaterEqual(inputs, 0);
    const signs = tf.where(isPositive, tf.onesLike(inputs), tf.neg(tf.onesLike(inputs))) as Tensor;
    // Means of no vectors are not numbers.
    const lossOf = (loss: () => Tensor, weight: number): Tensor =>
      inputs.size === 0 ? tf.scalar(0) : tf.mul(loss(), weight);
    const eLatentLoss = lossOf(() => tf.mean(tf.squaredDifference(signs, inputs)), commitmentCost);
    const entropyLoss = lossOf(() => this.#entropyLoss(inputs), entropyLossRatio);
    return {
      quantized: this.doEval ? signs : straightThrough(signs, inputs),
      encodingIndices: this.#codes(tf.cast(isPositive, 'int32')),
      eLatentLoss,
      entropyLoss,
      quantizerLoss: tf.add(eLatentLoss, entropyLoss),
    };
  }

  #codes(bits: Tensor): Tensor {
    const size = this.#groupSize;
    const groups = Array.from({ length: Math.ceil(this.hp.embeddingDim / size) }, (_, group) => {
      const own = tf.unstack(bits, -1).slice(group * size, (group + 1) * size);
      return codeOf(
        tf.stack(own, -1) as Tensor,
        own.map((_bit, i) => 2 ** i),
      );
    });
    return groups.length === 1 ? groups[0]! : tf.stack(groups, -1);
  }

  /** The signs [..., embeddingDim] of codes as `fprop` gives them. */
  decodeIds(ids: Tensor): Tensor {
    const size = this.#groupSize;
    const groups = this.hp.embeddingDim > size ? tf.unstack(ids, -1) : [ids];
    const bits = Array.from({ length: this.hp.embeddingDim }, (_, i) =>
      tf.mod(tf.floorDiv(groups[Math.floor(i / size)]!, int(2 ** (i % size))), int(2)),
    );
    return tf.sub(tf.mul(tf.cast(tf.stack(bits, -1), 'float32'), 2), 1);
  }

  /** Mean entropy of the vectors' codes, less that of the codes' mean, in nats. */
  #entropyLoss(inputs: Tensor): Tensor {
    const { embeddingDim, entropyLossGroups: groups, entropyLossBalance } = this.hp;
    const { entropyTemperature, entropyLossType } = this.hp;
    const size = embeddingDim / groups;
    const rows = inputs.size / embeddingDim;
    const logits = tf.mul(tf.stack([tf.neg(inputs), inputs], -1), 2 / entropyTemperature);
    const logs = tf.reshape(tf.logSoftmax(logits as Tensor), [rows, embeddingDim, 2]);
    const joint = jointLogs(tf.reshape(logs, [rows, groups, size, 2]));
    const assigned = (of: Tensor): Tensor => {
      const shares = tf.exp(of);
      if (entropyLossType === 'softmax') return shares;
      const best = tf.oneHot(tf.argMax(of, -1) as tf.Tensor1D, of.shape[2]!, 1, 0, 'float32') as Tensor;
      return straightThrough(best, shares);
    };
    const ofEach = tf.neg(tf.mean(tf.sum(tf.mul(assigned(joint), joint), [1, 2])));
    const entropies = (of: Tensor): Tensor => {
      const shares = tf.mean(assigned(of), 0);
      return tf.neg(tf.sum(tf.mul(shares, tf.log(tf.add(shares, 1e-5))), -1));
    };
    const ofMeans = [entropies(joint)];
    // Neighbours, and elements that lie `groups` apart.
    if (groups > 1 && size > 1) {
      const apart = tf.transpose(tf.reshape(logs, [rows, size, groups, 2]), [0, 2, 1, 3]);
      ofMeans.push(entropies(jointLogs(apart)));
    }
    return tf.sub(ofEach, tf.mul(tf.mean(tf.stack(ofMeans)), entropyLossBalance));
  }
}
