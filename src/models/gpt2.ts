/** @file Configs of GPT-2 style language models. */
import { type Config, derive } from '../hparams/index.js';
import {
  Gaussian,
  GELU,
  LayerNorm,
  NClassMajorSharedEmbeddingSoftmax,
  StackedTransformer,
  TrainablePositionalEmbedding,
  TransformerLm,
} from '../layers/index.js';

/** Shape of a GPT-2 style model. */
export interface Gpt2Options {
  readonly vocabSize: number;
  readonly modelDims: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Longest sequence. */
  readonly maxSeqLength: number;
  /** Hidden depth of the feed-forward layers; 4 modelDims where absent. */
  readonly hiddenDims?: number;
  /** Whether matrix products and norms have biases. Default false, as nanoGPT trains it. */
  readonly useBias?: boolean;
  /** Probability of dropout of embeddings, attention weights and branch outputs. Default 0. */
  readonly dropoutProb?: number;
}

/**
 * GPT-2's network (Radford et al., 2019), as nanoGPT builds it: trained positions, norms before the branches and at
 * the end, exact GELU, embeddings tied to the softmax, and GPT-2's initialisation.
 */
export function gpt2Lm(options: Gpt2Options): Config<TransformerLm> {
  const { vocabSize, modelDims, numLayers, numHeads, maxSeqLength } = options;
  const { hiddenDims = 4 * modelDims, useBias = false, dropoutProb = 0 } = options;
  const norm = () => LayerNorm.config({ epsilon: 1e-5, directScale: true, useBias });
  const stack = StackedTransformer.config({ numLayers, hiddenDims, numHeads, dropoutProb });
  stack.reluDropoutProb = 0;
  stack.inputDropoutProb = dropoutProb;
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = norm();
  layer.trAttenTpl.useBias = useBias;
  layer.trAttenTpl.internalEnablePerDimScale = false;
  layer.trAttenTpl.scaleQueryByDimPerHead = true;
  layer.trFflayerTpl.lnTpl = norm();
  layer.trFflayerTpl.hasBias = useBias;
  layer.trFflayerTpl.activationTpl = GELU.config({ approximate: false });
  return gpt2Init(
    TransformerLm.config({
      vocabSize,
      modelDims,
      positionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength }),
      stackedTransformerTpl: stack,
      softmaxTpl: NClassMajorSharedEmbeddingSoftmax.config({ hasBias: false }),
      finalLnTpl: norm(),
    }),
  );
}

/**
 * `lm` with GPT-2's initialisation: N(0, 0.02^2) for every matrix and table, and 0.02 / sqrt(2 numLayers) for the two
 * projections of each layer that write to the residual stream. Norms and biases keep 1 and 0.
 */
export function gpt2Init(lm: Config<TransformerLm>): Config<TransformerLm> {
  return derive(lm, (p) => {
    p.paramsInit = Gaussian.config({ scale: 0.02 });
    const { numLayers, transformerLayerParamsTpl: layer } = p.stackedTransformerTpl;
    const residual = Gaussian.config({ scale: 0.02 / Math.sqrt(2 * numLayers) });
    layer.trAttenTpl.outputProjInit = residual;
    layer.trFflayerTpl.outputProjInit = residual;
  });
}
