/** @file MaskedLmSoftmax: BERT's head over masked tokens (Devlin et al., 2018; transformers' BertLMPredictionHead). */
import type { Tensor } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { GELU } from './activations.js';
import { FeedForward } from './linears.js';
import { BaseNormalization, LayerNorm } from './normalizations.js';
import { NClassMajorSharedEmbeddingSoftmax } from './softmaxes.js';

/** logits = norm(gelu(inputs W + c)) w^T + b, where w [numClasses, inputDims] embeds the tokens too. */
export class MaskedLmSoftmax extends NClassMajorSharedEmbeddingSoftmax.with({
  transformTpl: sub(FeedForward, () =>
    FeedForward.config({ activationTpl: GELU.config({ approximate: false }) }),
  ).describe('The map of the inputs, from inputDims to inputDims.'),
  transformLnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm behind it.'),
}) {
  #transform!: FeedForward;
  #norm!: BaseNormalization;

  protected override setup(): void {
    super.setup();
    const { inputDims, transformTpl, transformLnTpl } = this.hp;
    this.#transform = this.createChild('transform', transformTpl, { inputDims, outputDims: inputDims });
    this.#norm = this.createChild('transform_ln', transformLnTpl, { dim: inputDims });
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    return super.uncappedLogits(this.#norm.fprop(this.#transform.fprop(inputs)));
  }
}
