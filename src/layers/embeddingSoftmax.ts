/** @file Embeddings, softmax layers with their losses, and layers that are both (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { Identity } from './activations.js';
import { BaseLayer } from './core/base.js';
import { tame, weightedSum } from './core/masks.js';
import type { Theta } from './core/weights.js';
import { Bias, FeedForward } from './linears.js';

/** Rows of `table` [V, D] for int32 `ids` [...], optionally times sqrt(D): [..., D]. */
function lookUp(table: Tensor, ids: Tensor, scaleSqrtDepth: boolean): Tensor {
  const rows = ops.embeddingLookup(table, ids);
  return scaleSqrtDepth ? tf.mul(rows, Math.sqrt(table.shape[1]!)) : rows;
}

/** A table with one row per class. */
export class Embedding extends BaseLayer.with({
  numClasses: z.int().positive().describe('Rows of the table: the size of the vocabulary.'),
  inputDims: z.int().positive().describe('Depth of a row.'),
  scaleSqrtDepth: z.boolean().default(false).describe('Whether rows are multiplied by sqrt(inputDims).'),
}) {
  declare readonly theta: Theta<'emb_var'>;

  protected override setup(): void {
    this.createVariable('emb_var', { shape: [this.hp.numClasses, this.hp.inputDims] });
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return lookUp(this.theta.emb_var, ids, this.hp.scaleSqrtDepth);
  }

  /** As `embLookup`. */
  fprop(ids: Tensor): Tensor {
    return this.embLookup(ids);
  }
}

/** Outputs of a softmax layer; [...] are the inputs' leading dimensions. */
export interface SoftmaxOutput {
  /** [..., V]. */
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
  /** Scalar: totalXent / (totalWeight + 1e-6). */
  readonly avgXent: Tensor;
}

/** Base of the softmax layers: the losses over logits that a subclass computes. */
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
   * @param inputs [..., inputDims].
   * @param classWeights [...]: weight of each position; in training, what is not finite in positions of weight 0 counts as 0.
   * @param classIds int32 [...]: the labels.
   */
  fprop(inputs: Tensor, classWeights: Tensor, classIds: Tensor): SoftmaxOutput {
    // Only gradients mix rows: without them, logits depend on the inputs alone.
    const logits = this.getLogits(this.doEval ? inputs : tame(inputs, classWeights));
    const perExampleXent = this.#xent(logits, classIds);
    const totalXent = weightedSum(perExampleXent, classWeights);
    const totalWeight = tf.sum(classWeights);
    if (this.hp.zLossWeight > 0) this.#addZLoss(logits, classWeights, totalWeight);
    return {
      logits,
      perExampleArgmax: tf.argMax(logits, -1),
      perExampleXent,
      perExampleWeight: classWeights,
      totalXent,
      totalWeight,
      avgXent: tf.div(totalXent, tf.add(totalWeight, 1e-6)),
    };
  }

  #xent(logits: Tensor, classIds: Tensor): Tensor {
    const xent = ops.softmaxCrossEntropy(logits, classIds);
    const { labelSmoothingProb, labelSmoothingApplyForEval, numClasses } = this.hp;
    if (labelSmoothingProb === 0 || (this.doEval && !labelSmoothingApplyForEval)) return xent;
    // With p at the label and q = p_smooth / (V - 1) elsewhere: (p - q) xent + q (V logsumexp - sum of logits).
    const other = labelSmoothingProb / (numClasses - 1);
    const all = tf.sub(tf.mul(tf.logSumExp(logits, -1), numClasses), tf.sum(logits, -1));
    return tf.add(tf.mul(xent, 1 - labelSmoothingProb - other), tf.mul(all, other));
  }

  #addZLoss(logits: Tensor, classWeights: Tensor, totalWeight: Tensor): void {
    const squares = tf.square(tf.logSumExp(logits, -1));
    // Like avgXent, 0 instead of NaN for a batch of only padding.
    const mean = tf.div(weightedSum(squares, classWeights), tf.add(totalWeight, 1e-6));
    const loss = tf.mul(mean, this.hp.zLossWeight) as Tensor;
    this.addSummary('aux_z_loss', () => loss);
    this.addAuxLoss('aux_z_loss', loss);
  }
}

/** logits = inputs w + b, with w [inputDims, numClasses]; `feedForwardTpl.hasBias = false` omits b. */
export class FullSoftmax extends BaseSoftmax.with({
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  feedForwardTpl: sub(FeedForward).describe('The map to logits; its activation is the identity.'),
}) {
  protected logitsFfn!: FeedForward;

  protected override setup(): void {
    const { inputDims, numClasses, biasInit, feedForwardTpl } = this.hp;
    this.logitsFfn = this.createChild('logits_ffn', feedForwardTpl, {
      inputDims,
      outputDims: numClasses,
      biasInit,
      activationTpl: Identity.config(),
    });
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    return this.logitsFfn.fprop(inputs);
  }
}

/** A softmax that also embeds tokens, with its transposed weights as the table. */
export class SharedEmbeddingSoftmax extends FullSoftmax.with({
  scaleSqrtDepth: z
    .boolean()
    .default(false)
    .describe('Whether embeddings are multiplied by sqrt(inputDims).'),
}) {
  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return lookUp(tf.transpose(this.logitsFfn.weights), ids, this.hp.scaleSqrtDepth);
  }
}

/** SharedEmbeddingSoftmax with w [numClasses, inputDims]: lookup needs no transposed copy of the table. */
export class NClassMajorSharedEmbeddingSoftmax extends BaseSoftmax.with({
  scaleSqrtDepth: z
    .boolean()
    .default(false)
    .describe('Whether embeddings are multiplied by sqrt(inputDims).'),
  hasBias: z.boolean().default(true).describe('Whether logits have a bias.'),
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  biasTpl: sub(Bias).describe('The bias.'),
}) {
  declare readonly theta: Theta<'w'>;
  #bias: Bias | null = null;

  protected override setup(): void {
    const { inputDims, numClasses, hasBias, biasInit, biasTpl } = this.hp;
    this.createVariable('w', { shape: [numClasses, inputDims] });
    if (hasBias) this.#bias = this.createChild('bias', biasTpl, { dims: numClasses, biasInit });
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    const logits = tf.matMul(inputs, this.theta.w, false, true);
    return this.#bias ? this.#bias.fprop(logits) : logits;
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return lookUp(this.theta.w, ids, this.hp.scaleSqrtDepth);
  }
}
