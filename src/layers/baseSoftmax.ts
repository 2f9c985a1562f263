/** @file Base of the softmax layers: logits, losses of rows, and sums over a batch or over chunks of it. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { tame, weightedSum } from './core/masks.js';
import { oneHotOf } from './embeddings.js';

/** Outputs of a softmax layer; [...] are the inputs' leading dimensions. */
export interface SoftmaxOutput {
  /** [..., V]. With `chunkSize` they are computed for whom reads them, apart from the loss. */
  readonly logits: Tensor;
  /** int32 [...]: the class with the largest logit. */
  readonly perExampleArgmax: Tensor;
  /** [...]: cross entropy in nats. */
  readonly perExampleXent: Tensor;
  /** [...]. */
  readonly perExampleWeight: Tensor;
  /** Scalar: sum of weight times cross entropy. */
  readonly totalXent: Tensor;
  /** Scalar: sum of the weights. */
  readonly totalWeight: Tensor;
  /** Scalar: weight of avgXent in means over batches; totalWeight but in GShard's softmax. */
  readonly avgXentWeight: Tensor;
  /** Scalar: totalXent / (avgXentWeight + 1e-6). */
  readonly avgXent: Tensor;
}

/** Targets of rows; one of the first two. */
export type Targets = {
  /** int32 [...]: the labels. */
  readonly ids?: Tensor;
  /** [..., V]: probabilities of the classes. */
  readonly probabilities?: Tensor;
  /** [..., V]: weights of the classes, where a layer has them. */
  readonly classWeights?: Tensor;
};

/** The loss of rows of logits [..., V]: [...]. */
export type RowLoss = (logits: Tensor, targets: Targets) => Tensor;

/** Losses and classes of some rows. */
interface Part {
  /** totalXent, and the z-loss's sum where there is one. */
  readonly sums: readonly Tensor[];
  readonly perExampleXent: Tensor;
  readonly perExampleArgmax: Tensor;
}

/**
 * Base of the softmax layers: the losses over logits that a subclass computes.
 *
 * Subclasses may override: `getLogits` (other limits), `smoothing` (of labels), `rowLoss` (another loss), `avgXentWeight`.
 */
export abstract class BaseSoftmax extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input.'),
  numClasses: z.int().positive().describe('Number of classes: the size of the vocabulary.'),
  softCapLogits: z
    .number()
    .nonnegative()
    .default(0)
    .describe('c > 0: logits become c tanh(logits / c); 0: they stay.'),
  labelSmoothingProb: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe('Probability that the target moves from the label to all other classes, evenly.'),
  labelSmoothingApplyForEval: z.boolean().default(true).describe('Whether evaluation smooths labels too.'),
  zLossWeight: z
    .number()
    .nonnegative()
    .default(0)
    .describe('Weight of the auxiliary loss mean(logsumexp(logits)^2); 0: none.'),
  chunkSize: z
    .int()
    .nonnegative()
    .default(0)
    .describe(
      'n > 0: the loss of at most n positions at a time, so that no logits of more stand in memory; 0: of all at once.',
    ),
}) {
  static override readonly isAbstract = true;
  /** [..., inputDims] to [..., numClasses], before the cap. */
  protected abstract uncappedLogits(inputs: Tensor): Tensor;

  /** [..., inputDims] to logits [..., numClasses]. */
  getLogits(inputs: Tensor): Tensor {
    const logits = this.uncappedLogits(inputs);
    const cap = this.hp.softCapLogits;
    return cap > 0 ? tf.mul(tf.tanh(tf.div(logits, cap)), cap) : logits;
  }

  /**
   * With `chunkSize`, the gradient of the sum of avgXent and the z-loss is made with their values. Where the loss is another,
   * which weighs one of them otherwise or depends on perExampleXent, chunks are computed again for their gradient.
   *
   * @param inputs [..., inputDims].
   * @param classWeights [...]: weight of each position; in training, what is not finite in positions of weight 0 counts as 0.
   * @param classIds int32 [...]: the labels; null where there are probabilities instead.
   * @param classProbabilities [..., numClasses]: target probabilities, which are not smoothed.
   */
  fprop(
    inputs: Tensor,
    classWeights: Tensor,
    classIds: Tensor | null,
    classProbabilities?: Tensor,
  ): SoftmaxOutput {
    if (classProbabilities !== undefined)
      return this.lossOf(inputs, classWeights, { probabilities: ops.stopGradient(classProbabilities) });
    if (classIds === null) throw this.error('expected classIds or classProbabilities, got neither.');
    return this.lossOf(inputs, classWeights, { ids: classIds });
  }

  /** As `fprop`. */
  protected lossOf(inputs: Tensor, classWeights: Tensor, targets: Targets): SoftmaxOutput {
    const { chunkSize, zLossWeight } = this.hp;
    // Only gradients mix rows: without them, logits depend on the inputs alone.
    const x = this.doEval ? inputs : tame(inputs, classWeights);
    const logits = this.getLogits(x);
    const rowLoss = this.rowLoss();
    const part =
      chunkSize === 0
        ? this.#part(rowLoss, logits, classWeights, targets)
        : this.#inChunks(rowLoss, x, classWeights, targets);
    const [totalXent, zLoss] = part.sums as [Tensor, Tensor?];
    const totalWeight = tf.sum(classWeights);
    const avgXentWeight = this.avgXentWeight(classWeights, totalWeight);
    // A batch of only padding has losses of 0 instead of NaN.
    const denominator = tf.add(avgXentWeight, 1e-6);
    if (zLossWeight > 0) {
      const loss = tf.div(zLoss!, denominator) as Tensor;
      this.addSummary('aux_z_loss', () => loss);
      this.addAuxLoss('aux_z_loss', loss);
    }
    return {
      logits,
      perExampleArgmax: part.perExampleArgmax,
      perExampleXent: part.perExampleXent,
      perExampleWeight: classWeights,
      totalXent,
      totalWeight,
      avgXentWeight,
      avgXent: tf.div(totalXent, denominator),
    };
  }

  /** What the sums are divided by. */
  protected avgXentWeight(_classWeights: Tensor, totalWeight: Tensor): Tensor {
    return totalWeight;
  }

  #part(rowLoss: RowLoss, logits: Tensor, weights: Tensor, targets: Targets): Part {
    const { zLossWeight } = this.hp;
    const perExampleXent = rowLoss(logits, targets);
    const sums = [weightedSum(perExampleXent, weights)];
    if (zLossWeight > 0) {
      const squares = tf.square(tf.logSumExp(logits, -1));
      sums.push(tf.mul(weightedSum(squares, weights), zLossWeight));
    }
    return { sums, perExampleXent, perExampleArgmax: tf.argMax(logits, -1) };
  }

  /** As `#part`, by chunks of almost equal size; the last one ends with rows of weight 0. */
  #inChunks(rowLoss: RowLoss, inputs: Tensor, weights: Tensor, targets: Targets): Part {
    const leading = weights.shape;
    const rows = weights.size;
    const chunks = Math.max(Math.ceil(rows / this.hp.chunkSize), 1);
    const size = Math.ceil(rows / chunks);
    const padding = chunks * size - rows;
    const cut = (x: Tensor): Tensor => {
      const rest = x.shape.slice(leading.length);
      const flat = tf.reshape(x, [rows, ...rest]);
      const padded =
        padding > 0 ? tf.pad(flat, [[0, padding], ...rest.map((): [number, number] => [0, 0])]) : flat;
      return tf.reshape(padded, [chunks, size, ...rest]);
    };
    const cutTargets: Targets = Object.fromEntries(
      Object.entries(targets).map(([name, x]) => [name, cut(x)]),
    );
    const [sums, made] = ops.sumOfChunks(
      (chunk: { x: Tensor; weights: Tensor; targets: Targets }) => {
        const { sums, ...made } = this.#part(rowLoss, this.getLogits(chunk.x), chunk.weights, chunk.targets);
        return [sums, made];
      },
      { x: cut(inputs), weights: cut(weights), targets: cutTargets },
    );
    const joined = (x: Tensor): Tensor =>
      tf.reshape(tf.slice(tf.reshape(x, [chunks * size]), [0], [rows]), leading);
    return {
      sums,
      perExampleXent: joined(made.perExampleXent),
      perExampleArgmax: joined(made.perExampleArgmax),
    };
  }

  /** Target probability of the label, and of each other class; null where labels are not smoothed in this pass. */
  protected smoothing(): { readonly label: number; readonly other: number } | null {
    const { labelSmoothingProb, labelSmoothingApplyForEval, numClasses } = this.hp;
    if (labelSmoothingProb === 0 || (this.doEval && !labelSmoothingApplyForEval)) return null;
    return { label: 1 - labelSmoothingProb, other: labelSmoothingProb / (numClasses - 1) };
  }

  /** Target probabilities [..., numClasses]. */
  protected probabilitiesOf({ ids, probabilities }: Targets): Tensor {
    if (probabilities !== undefined) return probabilities;
    const labels = oneHotOf(ids!, this.hp.numClasses);
    const smoothing = this.smoothing();
    return smoothing === null
      ? labels
      : tf.add(tf.mul(labels, smoothing.label - smoothing.other), smoothing.other);
  }

  /** The loss of rows in this pass: here their cross entropy. Called once a pass. */
  protected rowLoss(): RowLoss {
    return (logits, { ids, probabilities }) => {
      if (probabilities !== undefined)
        return tf.neg(tf.sum(tf.mul(probabilities, tf.logSoftmax(logits)), -1));
      const xent = ops.softmaxCrossEntropy(logits, ids!);
      const smoothing = this.smoothing();
      if (smoothing === null) return xent;
      // With p at the label and q elsewhere: (p - q) xent + q (V logsumexp - sum of logits).
      const { label, other } = smoothing;
      const all = tf.sub(tf.mul(tf.logSumExp(logits, -1), this.hp.numClasses), tf.sum(logits, -1));
      return tf.add(tf.mul(xent, label - other), tf.mul(all, other));
    };
  }
}
