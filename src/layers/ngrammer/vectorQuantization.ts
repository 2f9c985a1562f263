/** @file VectorQuantization: clusters of vectors as running means (praxis/layers/ngrammer.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { bothOf, selected, unpadded, weighedRows } from '../core/masks.js';
import { WeightCollection } from '../core/weights.js';
import { lookUpCodes, nearestCodes } from '../quantizers/codebooks.js';

/** Fields of clusters. */
export const clusterFields = {
  numClusters: z.int().positive().describe('K: clusters of each head.'),
  decay: z.number().min(0).max(1).default(0.999).describe('Weight of the means before in their update.'),
  epsilon: z
    .number()
    .positive()
    .default(1e-6)
    .describe('Added to the number of vectors that are divided by.'),
};

/** Clusters of vectors. */
export interface Clusters {
  /** int32 [B, T, N]: the nearest mean of each head. */
  readonly clusterIds: Tensor;
  /** [B, T, N, H]: that mean; 0 for padding. */
  readonly nearestCentroid: Tensor;
}

/**
 * The nearest of `numClusters` means for each of N heads (k-means, online, as in Roy et al., 2021). Nothing is trained by
 * gradients: in training, the means move to those of the batch's vectors by mean = decay mean + (1 - decay) batch mean. As in Pax, the
 * mean of a cluster without a vector counts as 0. Neither padding nor rows of weight 0 count.
 */
export class VectorQuantization extends BaseLayer.with({
  numHeads: z.int().positive().describe('N: heads, each with clusters of its own.'),
  dimPerHead: z.int().positive().describe('H: depth of a head.'),
  ...clusterFields,
}) {
  protected override setup(): void {
    const { numHeads, numClusters, dimPerHead } = this.hp;
    this.createVariable('means', {
      shape: [numHeads, numClusters, dimPerHead],
      collections: [WeightCollection.NON_TRAINABLE],
    });
  }

  /**
   * @param inputs [B, T, N, H].
   * @param paddings [B, T], 1 for padding.
   */
  fprop(inputs: Tensor, paddings?: Tensor): Clusters {
    const means = this.getVar('means');
    const codebook = tf.transpose(means, [1, 0, 2]) as Tensor;
    const clusterIds = nearestCodes(inputs, codebook);
    const kept = paddings && unpadded(this, paddings, inputs.shape.slice(0, 2));
    const centroids = tf.reshape(lookUpCodes(clusterIds, codebook), inputs.shape) as Tensor;
    if (!this.doEval) this.#update(means, inputs, clusterIds, kept);
    return { clusterIds, nearestCentroid: kept ? selected(centroids, behind(kept, 4)) : centroids };
  }

  #update(means: Tensor, inputs: Tensor, clusterIds: Tensor, kept: Tensor | undefined): void {
    const { numHeads, numClusters, dimPerHead, decay, epsilon } = this.hp;
    const [batch, time] = inputs.shape as [number, number];
    const rows = weighedRows(this, inputs);
    const weighed = rows && (tf.reshape(rows, [batch, 1]) as Tensor);
    const counted = bothOf(kept, weighed);
    const heads = tf.mul(tf.range(0, numHeads, 1, 'int32'), tf.scalar(numClusters, 'int32'));
    const cells = tf.reshape(tf.add(clusterIds, heads), [-1]) as tf.Tensor1D;
    const sumOf = (x: Tensor, depth: number): Tensor => {
      const values = counted ? selected(x, behind(counted, 4)) : x;
      const flat = tf.reshape(values, [batch * time * numHeads, depth]) as tf.Tensor2D;
      const sums = tf.unsortedSegmentSum(flat, cells, numHeads * numClusters);
      return tf.reshape(sums, [numHeads, numClusters, depth]) as Tensor;
    };
    const counts = sumOf(tf.ones([batch, time, numHeads, 1]), 1);
    const batchMeans = tf.div(sumOf(ops.stopGradient(inputs), dimPerHead), tf.add(counts, epsilon));
    this.addSummary('k_means/centroid/l2_norm_avg', () => tf.mean(tf.norm(means, 2, -1)) as Tensor);
    this.addSummary(
      'k_means/centroid/inactive_clusters_proportion',
      () => tf.mean(tf.cast(tf.equal(counts, 0), 'float32')) as Tensor,
    );
    const moved = tf.add(tf.mul(means, decay), tf.mul(batchMeans, 1 - decay));
    this.updateVar('means', moved as Tensor);
  }
}

/** `x` [B, T] with axes of size 1 behind it. */
const behind = (x: Tensor, rank: number): Tensor =>
  tf.reshape(x, [...x.shape, ...Array.from({ length: rank - x.rank }, () => 1)]);
