/** @file Layers: BaseLayer, the ambient context, weight initialisation and the layers themselves. */
export {
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
export { type AttentionArgs, DotProductAttention } from './attentions.js';
export {
  BaseLayer,
  type DecodeStateSpec,
  LayerError,
  type Theta,
  type Variable,
  WeightCollection,
  type WeightHParams,
} from './baseLayer.js';
export {
  type AuxLoss,
  type CallObserver,
  type ContextOptions,
  type LayerContext,
  observeCalls,
  runInContext,
} from './context.js';
export { Conv2D } from './convolutions.js';
export { Embedding } from './embeddings.js';
export { Bias, FeedForward, Linear, MLPBlock } from './linears.js';
export { BaseNormalization, IdentityNorm, LayerNorm, RmsNorm } from './normalizations.js';
export { GlobalPooling, Pooling } from './poolings.js';
export {
  BasePositionalEmbedding,
  PositionalEmbedding,
  RotaryPositionalEmbedding,
  TrainablePositionalEmbedding,
} from './positions.js';
export { AttentionProjection, CombinedQKVProjectionLayer, PerDimScale } from './projections.js';
export {
  BaseSoftmax,
  FullSoftmax,
  NClassMajorSharedEmbeddingSoftmax,
  SharedEmbeddingSoftmax,
  type SoftmaxOutput,
} from './softmax.js';
export { Dropout } from './stochastics.js';
export { type LmInputs, type LmLabels, type LmOutput, TransformerLm } from './transformerLm.js';
export { StackedTransformer, Transformer, TransformerFeedForward } from './transformers.js';
export {
  canPrefill,
  decodeStateSpecs,
  fillVariables,
  initVariables,
  listLayers,
  listVariables,
} from './variables.js';
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
} from './weightInit.js';
