/** @file Layers: BaseLayer, the context of a forward pass, weight initialisation, and layer classes. */
export {
  activationField,
  activationLayer,
  BaseActivation,
  ELU,
  Exp,
  GELU,
  Identity,
  LeakyReLU,
  ReLU,
  ReLU6,
  Sigmoid,
  SiLU,
  Softplus,
  SquaredReLU,
  Swish,
  Tanh,
} from './activations.js';
export { DotProductAttention, type Heads } from './attentions.js';
export { BaseKvCache, type CachedHeads, FullCache, MemoryCache, WindowCache } from './caches.js';
export { Conv2D } from './convolutions.js';
export { BaseLayer } from './core/base.js';
export {
  type AuxLoss,
  type ContextOptions,
  type DecodeStateSpec,
  type LayerContext,
  runInContext,
} from './core/context.js';
export { ActivationDtype, type SplitDims, splitDims } from './core/layerFields.js';
export { isWeighed, selected, weightedSum } from './core/masks.js';
export { type CallObserver, LayerError, observeCalls } from './core/methods.js';
export { TAP_STATISTICS, type TapOutputs, Taps } from './core/taps.js';
export {
  decodeStateSpecs,
  fillVariables,
  initVariables,
  listLayers,
  listVariables,
} from './core/variables.js';
export {
  Constant,
  Gaussian,
  GaussianSqrtDim,
  GaussianSqrtFanAvg,
  GaussianSqrtFanIn,
  GaussianSqrtFanOut,
  TruncatedGaussian,
  TruncatedGaussianSqrtDim,
  TruncatedGaussianSqrtFanIn,
  TruncatedGaussianSqrtFanOut,
  Uniform,
  UniformSqrtDim,
  UniformSqrtFanAvg,
  UniformUnitScaling,
  WeightInit,
  type WeightShape,
  Xavier,
  XavierWithFixupParams,
} from './core/weightInit.js';
export { type Theta, type Variable, WeightCollection, type WeightHParams } from './core/weights.js';
export {
  BaseSoftmax,
  Embedding,
  FullSoftmax,
  NClassMajorSharedEmbeddingSoftmax,
  SharedEmbeddingSoftmax,
  type SoftmaxOutput,
} from './embeddingSoftmax.js';
export { GroupedQueryAttention } from './groupedQueryAttention.js';
export { GroupNorm } from './groupNorm.js';
export { Bias, FeedForward, Linear, MLPBlock } from './linears.js';
export { BaseMixer, type MixerArgs, type StepArgs } from './mixer.js';
export { BaseNormalization, BatchNorm, IdentityNorm, LayerNorm, RmsNorm } from './normalizations.js';
export { GlobalPooling, Pooling } from './poolings.js';
export {
  BasePositionalEmbedding,
  PositionalEmbedding,
  RotaryPositionalEmbedding,
  ScaledRotaryPositionalEmbedding,
  TrainablePositionalEmbedding,
} from './positions.js';
export { AttentionProjection, CombinedQKVProjectionLayer, PerDimScale } from './projections.js';
export { StackedTransformerRepeated } from './repeatedTransformers.js';
export { Repeat } from './repeats.js';
export { Sequential } from './sequential.js';
export { Dropout } from './stochastics.js';
export { type LmInputs, type LmLabels, type LmOutput, TransformerLm } from './transformerModels.js';
export {
  type Attends,
  type Memory,
  StackedTransformer,
  Transformer,
  type TransformerArgs,
  TransformerFeedForward,
} from './transformers.js';
export { positionsOf, type Visibility } from './visibility.js';
