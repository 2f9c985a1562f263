/** @file Layers: BaseLayer, the context of a forward pass, weight initialisation, and layer classes. */
export {
  activationField,
  activationLayer,
  BaseActivation,
  ClampedLinear,
  ClampedSwish,
  CubedReLU,
  ELU,
  Exp,
  GELU,
  Identity,
  LeakyReLU,
  QuickGELU,
  ReLU,
  ReLU6,
  Sigmoid,
  SiLU,
  SineReLU,
  Softplus,
  SquaredReLU,
  Swish,
  softplus,
  Tanh,
} from './activations.js';
export { addLora, LORA_VARIABLES, loraLayers, mergeLora } from './adapters/addLora.js';
export { addPrefix, PREFIX_VARIABLES } from './adapters/addPrefix.js';
export {
  LoraAttentionProjection,
  LoraCombinedQKVProjectionLayer,
  type LoraLayer,
  LoraLinear,
} from './adapters/lora.js';
export { AdaptedTransformerFeedForward, MultitaskResidualAdapter } from './adapters/residualAdapters.js';
export { DotProductAttention, type Heads } from './attention/attentions.js';
export { Alibi, BasePositionBias, RelativeBias } from './attention/biases.js';
export { BaseKvCache, type CachedHeads, FullCache, MemoryCache, WindowCache } from './attention/caches.js';
export { CausalDepthwiseConv1D } from './attention/causalDepthwise.js';
export { GroupedQueryAttention } from './attention/groupedQueryAttention.js';
export { KeyValuePrefix } from './attention/keyValuePrefix.js';
export { LatentAttention, LatentCache } from './attention/latentAttention.js';
export {
  DotProductAttentionWithContext,
  DotProductAttentionWithContextXL,
  LocalSelfAttention,
  LocalSelfAttentionAlibi,
  LocalSelfAttentionRelativeBias,
  LocalSelfAttentionXL,
} from './attention/localAttention.js';
export {
  MultiQueryDotProductAttention,
  OneHeadedAttentionProjection,
} from './attention/multiQueryAttention.js';
export {
  BasePositionalEmbedding,
  PositionalEmbedding,
  PositionalEmbedding2D,
  TrainablePositionalEmbedding,
} from './attention/positions.js';
export { AttentionProjection, CombinedQKVProjectionLayer, PerDimScale } from './attention/projections.js';
export {
  BaseRotaryScaling,
  DynamicNtkRotaryScaling,
  LinearRotaryScaling,
  Llama3RotaryScaling,
  YarnRotaryScaling,
} from './attention/rotaryScalings.js';
export { RotaryPositionalEmbedding } from './attention/rotations.js';
export { positionsOf, type Visibility } from './attention/visibility.js';
export { DotProductAttentionXL } from './attention/xlAttention.js';
export { BaseSoftmax, type SoftmaxOutput } from './baseSoftmax.js';
export { AddResidual, ApplyPadding, Chain, DictToArgs, FullLike } from './chain.js';
export { ConvBNAct, ConvBNActWithPadding } from './convolution/convBNAct.js';
export { BaseConvolution, Conv1D, Conv2D, Conv3D } from './convolution/convolutions.js';
export { BaseDepthwiseConv1D, DepthwiseConv1D } from './convolution/depthwiseConvolutions.js';
export { Conv2DTranspose, SeparableConv2D } from './convolution/imageConvolutions.js';
export { LightConv1D } from './convolution/lightConvolutions.js';
export { BaseLayer } from './core/base.js';
export { compensationOf, type FactorSums } from './core/compensation.js';
export {
  type AuxLoss,
  type ContextOptions,
  type DecodeStateSpec,
  type LayerContext,
  runFrozen,
  runInContext,
} from './core/context.js';
export { ActivationDtype, type SplitDims, splitDims } from './core/layerFields.js';
export { type MediaKind, MOST_ENTRIES, mediaType } from './core/layerSummaries.js';
export { layerTree } from './core/layerTree.js';
export { isWeighed, selected, weightedSum } from './core/masks.js';
export { type CallObserver, LayerError, observeCalls } from './core/methods.js';
export { BaseMixer, type MixerArgs, type StepArgs } from './core/mixer.js';
export { ScaledDeltaOrthogonal } from './core/orthogonalInit.js';
export {
  ActQuantization,
  type CodeForm,
  Quantization,
  scaleName,
  WeightQuantization,
} from './core/quantization.js';
export { splitActivations } from './core/splitDims.js';
export { TAP_STATISTICS, type TapOutputs, Taps } from './core/taps.js';
export {
  decodeStateSpecs,
  drawVariables,
  fillVariables,
  initialValues,
  initVariables,
  listLayers,
  listVariables,
} from './core/variables.js';
export { codesOf, notFinite } from './core/weightCodes.js';
export {
  Constant,
  constantInit,
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
export { Einsum } from './einsums.js';
export { Embedding, TokenCounter } from './embeddings.js';
export { GroupNorm } from './groupNorm.js';
export { Bias, FeedForward, Linear, MLPBlock } from './linears.js';
export { BiTemperedLoss } from './losses.js';
export { MaskedLmDataAugmenter } from './maskedLmDataAugmenter.js';
export { MaskedLmSoftmax } from './maskedLmSoftmax.js';
export { TransformerFeedForwardMoe } from './moe/transformerFeedForwardMoe.js';
export { BregmanCompression, BregmanNgrammer } from './ngrammer/bregmanNgrammer.js';
export { BregmanPCA } from './ngrammer/bregmanPca.js';
export { BaseNgrammer, Ngrammer, VQNgrammer } from './ngrammer/ngrammers.js';
export { type Clusters, VectorQuantization } from './ngrammer/vectorQuantization.js';
export {
  BaseNormalization,
  BatchNorm,
  IdentityNorm,
  LayerNorm,
  l2Normalized,
  RmsNorm,
  RmsNormNoScale,
} from './normalizations.js';
export { deviceTurns, iterationsOf } from './pipelineSchedule.js';
export { GlobalPooling, Pooling, Pooling1D } from './poolings.js';
export { LookupFreeQuantizer, ScalarQuantizer } from './quantizers/fixedQuantizers.js';
export {
  type QuantizedSequence,
  RandomVectorQuantizer,
  VectorQuantizer,
} from './quantizers/vectorQuantizers.js';
export { BaseRnnCell } from './recurrent/cells.js';
export { FRnn, LstmFrnn, StackBiFrnn, StackFrnn } from './recurrent/frnn.js';
export { GruCell, SruCell } from './recurrent/gatedCells.js';
export { GriffinRecurrentBlock, RgLru } from './recurrent/griffin.js';
export {
  CifgLstmCellSimple,
  LayerNormalizedLstmCellSimple,
  LstmCellSimple,
} from './recurrent/lstmCells.js';
export { Mamba, Mamba2 } from './recurrent/mamba.js';
export { BaseRecurrence } from './recurrent/recurrence.js';
export { GatedDeltaNet, MultiScaleRetention } from './recurrent/retentionMixers.js';
export { ShortConvolution } from './recurrent/shortConvolution.js';
export { S5, SSM } from './recurrent/stateSpaces.js';
export { Repeat } from './repeats.js';
export { Sequential } from './sequential.js';
export { LayerwiseShardablePipelined } from './shardablePipeline.js';
export { SigmoidCrossEntropy } from './sigmoidCrossEntropy.js';
export {
  FullSoftmax,
  GShardSharedEmbeddingSoftmax,
  NClassMajorSharedEmbeddingSoftmax,
  SharedEmbeddingSoftmax,
} from './softmaxes.js';
export { ConformerEncoder, type EncodedFrames } from './speech/conformerEncoders.js';
export { Conformer, SelfAttentionWithNormAndResidual } from './speech/conformers.js';
export { ConvolutionalStem } from './speech/convolutionalStem.js';
export { ctcGreedyIds } from './speech/ctcDecoding.js';
export {
  type CtcAlignments,
  type CtcInputs,
  type CtcOptions,
  ctcLoss,
  ctcLossWithAlignments,
} from './speech/ctcObjectives.js';
export { SpectrumAugmenter } from './speech/spectrumAugmenter.js';
export { type ShiftedSignals, TemporalShifting } from './speech/temporalShifting.js';
export { StackingOverTime } from './stackingOverTime.js';
export { Dropout, StochasticResidual } from './stochastics.js';
export {
  type SequenceInputs,
  type SourceInputs,
  TransformerEncoderDecoder,
} from './transformer/encoderDecoder.js';
export { TransformerFeedForward } from './transformer/feedForwards.js';
export { auxLossOf, type LmLabels, type LmOutput, withAuxLoss } from './transformer/lmLosses.js';
export { MultiTokenPredictionHead, MultiTokenPredictionLm } from './transformer/multiTokenPrediction.js';
export { ParallelTransformer } from './transformer/parallelTransformer.js';
export { PipelinedTransformer } from './transformer/pipelinedTransformer.js';
export { StackedTransformerRepeated } from './transformer/repeatedTransformers.js';
export { SSMGated } from './transformer/ssmGated.js';
export { StackedTransformer } from './transformer/stackedTransformers.js';
export { TransformerTextEncoder } from './transformer/textEncoders.js';
export { TokenTypeEmbedding } from './transformer/tokenTypes.js';
export { type LmInputs, TransformerLm } from './transformer/transformerModels.js';
export {
  type Attends,
  type Memory,
  Transformer,
  type TransformerArgs,
} from './transformer/transformers.js';
export { ConvNeXtBlock } from './vision/convNeXt.js';
export { MixerBlock } from './vision/mlpMixer.js';
export { InvertedResidualBlock, MobileNet } from './vision/mobileNets.js';
export { imageToPatch, resizeGrid } from './vision/patches.js';
export { BaseResNetBlock, ResNetBasicBlock, ResNetBlock } from './vision/resNetBlocks.js';
export { ResNet, resNet } from './vision/resNets.js';
export { UNet, UNetDownBlock, UNetUpBlock } from './vision/uNets.js';
export { VanillaBlock, VanillaNet } from './vision/vanillaNets.js';
export { VideoDecoder, VideoEncoder, VQVaeModel } from './vision/videoAutoencoders.js';
export { CausalConv, CondNormLayer, GroupNormSpatial, VideoResBlock } from './vision/videoBlocks.js';
export { BlurPool3D, DiscriminatorResBlock, VideoDiscriminator } from './vision/videoDiscriminators.js';
export {
  r1GradientPenalty,
  VQGANLoss,
  type VQGANLosses,
  type VQGANPredictions,
} from './vision/videoLosses.js';
export { VisionTransformer, VitEntryLayers, VitExitLayers } from './vision/visionTransformers.js';
export { SpectralNorm, WeightNormL2, WeightNormLinear } from './weightNorms.js';
