/** @file Configs of the decoder-only language models that Pax ships (paxml/tasks/lm/model_params.py). */
import type { Config } from '../hparams/index.js';
import {
  type BaseActivation,
  type BaseNormalization,
  type BasePositionalEmbedding,
  type BaseSoftmax,
  Embedding,
  FeedForward,
  FullSoftmax,
  Gaussian,
  GELU,
  LayerNorm,
  PipelinedTransformer,
  PositionalEmbedding,
  ReLU,
  RmsNorm,
  SharedEmbeddingSoftmax,
  SiLU,
  SquaredReLU,
  StackedTransformer,
  StackedTransformerRepeated,
  TrainablePositionalEmbedding,
  TransformerLm,
} from '../layers/index.js';

/** Activation functions of the feed-forward layers, by class name; GELU is the tanh formula, as in Pax. */
export const paxActivations = ['ReLU', 'GELU', 'SiLU', 'SquaredReLU'] as const;

/** Normalisations, by class name. */
export const paxNormalizations = ['LayerNorm', 'RmsNorm'] as const;

const activations: Record<(typeof paxActivations)[number], () => Config<BaseActivation>> = {
  ReLU: () => ReLU.config(),
  GELU: () => GELU.config(),
  SiLU: () => SiLU.config(),
  SquaredReLU: () => SquaredReLU.config(),
};

/** Shape of one of Pax's language models. Defaults are those of its TransformerLmSpmdAdafactor. */
export interface PaxLmOptions {
  readonly vocabSize: number;
  readonly modelDims: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Depth of a head; null or absent: modelDims / numHeads. */
  readonly dimsPerHead?: number | null;
  /** Hidden depth of the feed-forward layers; null or absent: 4 modelDims. */
  readonly hiddenDims?: number | null;
  readonly activation?: (typeof paxActivations)[number];
  /** Whether feed-forward layers multiply by a gate. */
  readonly useGatedActivation?: boolean;
  readonly normalization?: (typeof paxNormalizations)[number];
  /** Added to the variance of norms; 1e-6 by default. */
  readonly normEpsilon?: number;
  readonly normPolicy?: Config<StackedTransformer>['transformerLayerParamsTpl']['normPolicy'];
  /** Rows of a trained table of positions; null or absent: sinusoids. */
  readonly trainablePositions?: number | null;
  /** Whether queries and keys are rotated by position, beside the embeddings of positions. */
  readonly useRotaryPositionEmb?: boolean;
  /** Whether the embedding has a table of its own, instead of the softmax's weights. */
  readonly separateEmbedding?: boolean;
  /** Whether embeddings are multiplied by sqrt(modelDims); true by default. */
  readonly scaleSqrtDepth?: boolean;
  /** Whether rows hold several sequences; true by default. */
  readonly packedInput?: boolean;
  /** Whether query, key and value projections are one variable; true by default. */
  readonly combineQkv?: boolean;
  /** Whether attention projections have biases. Feed-forward layers have them always. */
  readonly useBias?: boolean;
  /** Whether queries are scaled by a trained factor for each dimension; true by default. */
  readonly perDimScale?: boolean;
  /** Cap of attention logits; 50 by default, 0: none. */
  readonly attenLogitCap?: number;
  /** Cap of the softmax's logits; 30 by default, 0: none. */
  readonly softmaxCapLogits?: number;
  /** Whether the softmax has a bias; true by default. */
  readonly softmaxBias?: boolean;
  /** Standard deviation of every initial weight; absent: Xavier's limits, and 1 / sqrt(modelDims) for the softmax. */
  readonly initStd?: number;
  /** Probability of dropout of attention weights, activations and branch outputs. */
  readonly dropoutProb?: number;
  /** What layers that are one repeated layer keep for their gradients; null or absent: each has variables of its own and keeps all. */
  readonly repeatedLayers?: Config<StackedTransformer>['checkpointPolicy'] | null;
  /** Stages that a batch passes as microbatches; null or absent: none. */
  readonly pipeline?: PaxPipeline | null;
}

/** A pipeline of stages: fields of a PipelinedTransformer. */
export interface PaxPipeline {
  readonly numStages: number;
  readonly numMicrobatches: number;
  readonly circularRepeat?: number;
  readonly streamIo?: boolean;
  readonly pipelineBroadcastInputs?: boolean;
}

/**
 * A decoder-only transformer as Pax's model_params builds it: norms before the branches and at the end, capped logits,
 * embeddings tied to the softmax unless `separateEmbedding`. As in Pax, a checkpoint policy is that of repeated layers alone.
 */
export function paxLm(options: PaxLmOptions): Config<TransformerLm> {
  const { vocabSize, modelDims, packedInput = true, initStd } = options;
  const lm = TransformerLm.config({
    vocabSize,
    modelDims,
    packedInput,
    positionEmbTpl: positions(options),
    stackedTransformerTpl: stack(options),
    softmaxTpl: softmax(options),
    finalLnTpl: norm(options),
  });
  if (initStd !== undefined) lm.paramsInit = Gaussian.config({ scale: initStd });
  if (options.separateEmbedding) {
    lm.separateEmbeddingTpl = Embedding.config({ scaleSqrtDepth: options.scaleSqrtDepth ?? true });
  }
  return lm;
}

function norm({ normalization = 'LayerNorm', normEpsilon = 1e-6 }: PaxLmOptions): Config<BaseNormalization> {
  return normalization === 'RmsNorm'
    ? RmsNorm.config({ epsilon: normEpsilon })
    : LayerNorm.config({ epsilon: normEpsilon });
}

function positions({ trainablePositions }: PaxLmOptions): Config<BasePositionalEmbedding> {
  return trainablePositions == null
    ? PositionalEmbedding.config()
    : TrainablePositionalEmbedding.config({ maxSeqLength: trainablePositions });
}

function softmax(options: PaxLmOptions): Config<BaseSoftmax> {
  const { modelDims, scaleSqrtDepth = true, softmaxBias = true, softmaxCapLogits = 30 } = options;
  const values = {
    softCapLogits: softmaxCapLogits,
    paramsInit: Gaussian.config({ scale: options.initStd ?? 1 / Math.sqrt(modelDims) }),
    feedForwardTpl: FeedForward.config({ hasBias: softmaxBias }),
  };
  return options.separateEmbedding
    ? FullSoftmax.config(values)
    : SharedEmbeddingSoftmax.config({ ...values, scaleSqrtDepth });
}

function stack(options: PaxLmOptions): Config<StackedTransformer> {
  const { modelDims, numLayers, numHeads, dimsPerHead = null, dropoutProb = 0 } = options;
  const hiddenDims = options.hiddenDims ?? 4 * modelDims;
  const { repeatedLayers = null, pipeline } = options;
  const values = { hiddenDims, numHeads, dropoutProb };
  const kept = repeatedLayers !== null && ({ remat: true, checkpointPolicy: repeatedLayers } as const);
  let config: Config<StackedTransformer>;
  if (pipeline) {
    const { numStages, numMicrobatches, circularRepeat = 1, streamIo = false } = pipeline;
    const { pipelineBroadcastInputs = false } = pipeline;
    config = PipelinedTransformer.config({
      ...{ ...values, ...kept, numLayers, circularRepeat, streamIo, pipelineBroadcastInputs },
      ...{ numPipelineStages: numStages, numPipelineMicrobatches: numMicrobatches },
      pipelineStage: kept ? StackedTransformerRepeated.config({}) : StackedTransformer.config(),
      weightSplitDimsMapping: { stages: ['stage'] },
    });
  } else
    config = kept
      ? StackedTransformerRepeated.config({ ...values, ...kept, xTimes: numLayers })
      : StackedTransformer.config({ ...values, numLayers });
  config.dimPerHead = dimsPerHead;
  const layer = config.transformerLayerParamsTpl;
  layer.normPolicy = options.normPolicy ?? 'pre';
  layer.lnTpl = norm(options);
  const { trAttenTpl, trFflayerTpl } = layer;
  trAttenTpl.combineQkv = options.combineQkv ?? true;
  trAttenTpl.useBias = options.useBias ?? false;
  trAttenTpl.internalEnablePerDimScale = options.perDimScale ?? true;
  trAttenTpl.attenLogitCap = options.attenLogitCap ?? 50;
  trAttenTpl.useRotaryPositionEmb = options.useRotaryPositionEmb ?? false;
  trFflayerTpl.lnTpl = norm(options);
  trFflayerTpl.activationTpl = activations[options.activation ?? 'ReLU']();
  trFflayerTpl.useGatedActivation = options.useGatedActivation ?? false;
  return config;
}
