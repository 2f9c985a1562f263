/** @file Classes of layers that no fixture has yet: reviews of changes to them are not tried by mutants. */
export const WITHOUT_FIXTURE: ReadonlySet<string> = new Set(
  `
  AdaptedTransformerFeedForward AddResidual Alibi ApplyPadding BiTemperedLoss BregmanCompression
  BregmanNgrammer BregmanPCA Chain CifgLstmCellSimple Conformer ConformerEncoder Conv1D
  Conv2DTranspose Conv3D ConvBNAct ConvBNActWithPadding ConvNeXtBlock CubedReLU DepthwiseConv1D
  DictToArgs DotProductAttentionWithContext DotProductAttentionWithContextXL DotProductAttentionXL
  DynamicNtkRotaryScaling Einsum FRnn FullLike GShardSharedEmbeddingSoftmax GatedDeltaNet
  GriffinRecurrentBlock GruCell InvertedResidualBlock KeyValuePrefix LatentAttention LatentCache
  LayerNormalizedLstmCellSimple LightConv1D LinearRotaryScaling LocalSelfAttention
  LocalSelfAttentionAlibi LocalSelfAttentionRelativeBias LocalSelfAttentionXL LookupFreeQuantizer
  LoraAttentionProjection LoraCombinedQKVProjectionLayer LoraLinear LstmCellSimple LstmFrnn Mamba
  Mamba2 MaskedLmDataAugmenter MixerBlock MobileNet MultiQueryDotProductAttention
  MultiScaleRetention MultiTokenPredictionHead MultiTokenPredictionLm MultitaskResidualAdapter
  Ngrammer OneHeadedAttentionProjection ParallelTransformer Pooling1D PositionalEmbedding2D
  RandomVectorQuantizer RelativeBias ResNet ResNetBasicBlock ResNetBlock RgLru RmsNormNoScale S5 SSM
  SSMGated ScalarQuantizer ScaledDeltaOrthogonal SelfAttentionWithNormAndResidual SeparableConv2D
  ShortConvolution SigmoidCrossEntropy SineReLU SpectralNorm SpectrumAugmenter SruCell StackBiFrnn
  StackFrnn StackingOverTime StochasticResidual TemporalShifting TokenCounter
  TransformerEncoderDecoder TransformerTextEncoder UNet UNetDownBlock UNetUpBlock VQNgrammer
  VanillaBlock VanillaNet VectorQuantization VectorQuantizer VisionTransformer VitEntryLayers
  VitExitLayers WeightNormL2 WeightNormLinear YarnRotaryScaling
`
    .trim()
    .split(/\s+/),
);
