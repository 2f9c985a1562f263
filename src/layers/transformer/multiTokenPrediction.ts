/** @file Multi-token prediction: heads that predict tokens further ahead, for training (DeepSeek-V3, 2024, section 2.2). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, classOf, deepCopy, deepCopyWith, isSet, sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { Linear } from '../linears.js';
import { BaseNormalization, LayerNorm, RmsNorm } from '../normalizations.js';
import { type LmLabels, type LmOutput, lossesOf } from './lmLosses.js';
import { StackedTransformer } from './stackedTransformers.js';
import { type LmInputs, TransformerLm } from './transformerModels.js';
import type { TransformerArgs } from './transformers.js';

/** stack(W [norm(states of the depth before); norm(embeddings of the tokens ahead)]), with an own norm for the logits. */
export class MultiTokenPredictionHead extends BaseLayer.with({
  modelDims: z.int().positive().describe('Depth of the model.'),
  lnTpl: sub(BaseNormalization, () => RmsNorm.config()).describe('The norms of states and of embeddings.'),
  finalLnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm before the softmax.'),
  linearTpl: sub(Linear).describe('The map of both to the depth of the model.'),
  stackedTransformerTpl: sub(StackedTransformer).describe('Its layers.'),
}) {
  #stateNorm!: BaseNormalization;
  #embeddingNorm!: BaseNormalization;
  #projection!: Linear;
  #stack!: StackedTransformer;
  #finalNorm!: BaseNormalization;

  protected override setup(): void {
    const { modelDims, lnTpl, finalLnTpl, linearTpl, stackedTransformerTpl } = this.hp;
    this.#stateNorm = this.createChild('hnorm', deepCopy(lnTpl), { dim: modelDims });
    this.#embeddingNorm = this.createChild('enorm', deepCopy(lnTpl), { dim: modelDims });
    const dims = { inputDims: 2 * modelDims, outputDims: modelDims };
    this.#projection = this.createChild('eh_proj', linearTpl, dims);
    this.#stack = this.createChild('transformer', stackedTransformerTpl, { modelDims });
    this.#finalNorm = this.createChild('final_ln', finalLnTpl, { dim: modelDims });
  }

  /** States [B, T, D] of the depth before, and embeddings [B, T, D] of the tokens ahead, to states of this depth. */
  fprop(states: Tensor, embeddings: Tensor, args: TransformerArgs): Tensor {
    const both = tf.concat([this.#stateNorm.fprop(states), this.#embeddingNorm.fprop(embeddings)], -1);
    return this.#stack.fprop(this.#projection.fprop(both), args);
  }

  /** What the softmax reads of this depth's states. */
  normalize(states: Tensor): Tensor {
    return this.#finalNorm.fprop(states);
  }
}

/** x [B, T] from `places` ahead, 0 where a row ends. */
function ahead(x: Tensor, places: number): Tensor {
  const [batch, time] = x.shape as [number, number];
  const kept = Math.max(0, time - places);
  return tf.pad(tf.slice(x, [0, time - kept], [batch, kept]), [
    [0, 0],
    [0, time - kept],
  ]) as Tensor;
}

/**
 * A TransformerLm that learns, besides each token's successor, the next `numPredictionDepths` tokens behind that: depth k reads
 * the states of depth k - 1 and the embedding of the token k ahead, and shares embedding and softmax with the model. λ times the mean
 * of their cross entropies is an auxiliary loss of training; evaluation and decoding are the plain model's.
 */
export class MultiTokenPredictionLm extends TransformerLm.with({
  numPredictionDepths: z.int().positive().default(1).describe('D: how many further tokens are predicted.'),
  mtpLossWeight: z.number().nonnegative().default(0.3).describe('λ: weight of the mean of their losses.'),
  mtpHeadTpl: sub(MultiTokenPredictionHead).describe(
    "Each depth. Unless it sets stackedTransformerTpl, that is the model's with one layer.",
  ),
}) {
  protected heads: MultiTokenPredictionHead[] = [];

  protected override setup(): void {
    super.setup();
    const { numPredictionDepths, modelDims, mtpHeadTpl, modelType } = this.hp;
    if (modelType !== 'causal') throw this.error(`modelType is '${modelType}': expected 'causal'.`);
    const stackedTransformerTpl = isSet(mtpHeadTpl, 'stackedTransformerTpl')
      ? mtpHeadTpl.stackedTransformerTpl
      : this.#lastLayer();
    const head = () =>
      deepCopyWith(mtpHeadTpl, { modelDims, stackedTransformerTpl: deepCopy(stackedTransformerTpl) });
    this.heads = this.createChildren('mtp', Array.from({ length: numPredictionDepths }, head));
  }

  /** The model's stack with its last layer alone. @throws LayerError for a repeated one */
  #lastLayer(): Config<StackedTransformer> {
    const { stackedTransformerTpl: stack } = this.hp;
    if (classOf(stack).prototype instanceof StackedTransformer)
      throw this.error(
        `stackedTransformerTpl is a ${classOf(stack).name}: set mtpHeadTpl.stackedTransformerTpl to a StackedTransformer.`,
      );
    const ofLast = (chosen: readonly number[]): number[] => (chosen.includes(stack.numLayers - 1) ? [0] : []);
    const chosen = { moeLayers: ofLast(stack.moeLayers), nopeLayers: ofLast(stack.nopeLayers) };
    return deepCopyWith(stack, { numLayers: 1, ...chosen });
  }

  override fprop(inputs: LmInputs, labels: LmLabels): LmOutput {
    const states = this.states(inputs);
    return lossesOf(this, this.softmax, this.normalize(states), labels, () => {
      if (!this.doEval && this.hp.mtpLossWeight > 0) this.#addLosses(states, inputs, labels);
      return this.auxLoss();
    });
  }

  #addLosses(states: Tensor, inputs: LmInputs, { classIds, classWeights }: LmLabels): void {
    const { numPredictionDepths, mtpLossWeight, usePaddings } = this.hp;
    const args = { seen: this.visibility(inputs), paddings: usePaddings ? inputs.paddings : undefined };
    let present = states;
    for (const [i, head] of this.heads.entries()) {
      const depth = i + 1;
      present = head.fprop(present, this.embedding.embLookup(ahead(inputs.ids, depth)), args);
      const weights = this.#weights(classWeights, inputs.segmentIds, depth);
      const { avgXent } = this.softmax.fprop(head.normalize(present), weights, ahead(classIds, depth));
      this.addSummary(`mtp_${depth}_xent`, () => avgXent);
      this.addAuxLoss(`mtp_${depth}_xent`, avgXent, mtpLossWeight / numPredictionDepths);
    }
  }

  /** Weights of targets `depth` ahead: 0 where the row, or the sequence in it, has ended before. */
  #weights(classWeights: Tensor, segmentIds: Tensor | undefined, depth: number): Tensor {
    const weights = ahead(classWeights, depth);
    if (!segmentIds) return weights;
    return tf.where(tf.equal(segmentIds, ahead(segmentIds, depth)), weights, tf.scalar(0)) as Tensor;
  }
}
