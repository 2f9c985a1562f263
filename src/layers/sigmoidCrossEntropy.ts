/** @file Sigmoid cross entropy: a class for itself, yes or no (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Config, type Report, sub } from '../hparams/index.js';
import { Identity } from './activations.js';
import { BaseSoftmax, type RowLoss, type SoftmaxOutput, type Targets } from './baseSoftmax.js';
import { isWeighed, weightedSum } from './core/masks.js';
import { FeedForward } from './linears.js';

/**
 * The sum over classes of -y log σ(logit) - (1 - y) log(1 - σ(logit)), with logits as FullSoftmax's and y the target
 * probability of a class. Weights may be those of classes.
 */
export class SigmoidCrossEntropy extends BaseSoftmax.with({
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  feedForwardTpl: sub(FeedForward)
    .nullable()
    .describe('The map to logits; null: the inputs are the logits, and have no cap.'),
}) {
  #logitsFfn: FeedForward | null = null;

  static override validate(config: Config<SigmoidCrossEntropy>, report: Report): void {
    const { feedForwardTpl, inputDims, numClasses, zLossWeight } = config;
    if (zLossWeight > 0) report('expected 0: sigmoids have no log-normaliser', 'zLossWeight');
    if (feedForwardTpl === null && inputDims !== numClasses)
      report(`expected numClasses (${numClasses}), as feedForwardTpl is null`, 'inputDims');
  }

  protected override setup(): void {
    const { inputDims, numClasses, biasInit, feedForwardTpl } = this.hp;
    if (feedForwardTpl === null) return;
    this.#logitsFfn = this.createChild('logits_ffn', feedForwardTpl, {
      inputDims,
      outputDims: numClasses,
      biasInit,
      activationTpl: Identity.config(),
    });
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    return this.#logitsFfn!.fprop(inputs);
  }

  override getLogits(inputs: Tensor): Tensor {
    return this.#logitsFfn === null ? inputs : super.getLogits(inputs);
  }

  protected override rowLoss(): RowLoss {
    return (logits, targets) => {
      // -log σ(x) y - log σ(-x) (1 - y) = log(1 + e^x) - x y.
      const each = tf.sub(tf.softplus(logits), tf.mul(logits, this.probabilitiesOf(targets)));
      return targets.classWeights ? weightedSum(each, targets.classWeights, -1) : tf.sum(each, -1);
    };
  }

  /** As a softmax's, with classWeights [..., numClasses] too: totalWeight is the sum of all of them. */
  protected override lossOf(inputs: Tensor, classWeights: Tensor, targets: Targets): SoftmaxOutput {
    if (classWeights.rank < inputs.rank) return super.lossOf(inputs, classWeights, targets);
    const rowWeights = tf.cast(tf.any(isWeighed(classWeights), -1), 'float32');
    const output = super.lossOf(inputs, rowWeights, { ...targets, classWeights });
    const totalWeight = tf.sum(classWeights);
    return {
      ...output,
      perExampleWeight: classWeights,
      totalWeight,
      avgXentWeight: totalWeight,
      avgXent: tf.div(output.totalXent, tf.add(totalWeight, 1e-6)),
    };
  }
}
