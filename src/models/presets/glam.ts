/** @file GLaM's and Grok's language models, as Pax's functions build them (praxis/layers/glam.py, grok.py). */
import { type Config, type ConfigValues, derive } from '../../hparams/index.js';
import {
  type AttentionProjection,
  DotProductAttention,
  FeedForward,
  Gaussian,
  GELU,
  GShardSharedEmbeddingSoftmax,
  Linear,
  MultiQueryDotProductAttention,
  RelativeBias,
  RmsNorm,
  StackedTransformerRepeated,
  Transformer,
  TransformerFeedForward,
  TransformerFeedForwardMoe,
  TransformerLm,
  UniformUnitScaling,
} from '../../layers/index.js';

/** Shape of a GLaM model. */
export interface GlamOptions {
  readonly vocabSize: number;
  readonly modelDims: number;
  /** Hidden depth of the feed-forward layers. */
  readonly hiddenDims: number;
  readonly numHeads: number;
  readonly dimPerHead: number;
  /** Even where there are experts, which every second layer has, from the first on. */
  readonly numLayers: number;
  /** Experts of such a layer. Default 0: none. */
  readonly numExperts?: number;
  /** Hidden depth of an expert. Default hiddenDims. */
  readonly expertDims?: number;
  /** Least capacity of an expert in a group; Pax's c_dim. Default 0: without a factor, no capacity. */
  readonly expertCapacityDim?: number;
  readonly expertCapacityFactor?: number;
  readonly numGroups?: number;
  /** Default 0.01. */
  readonly moeLoadBalanceLossWeight?: number;
  /** Default 1e-4. */
  readonly zLossWeight?: number;
  /** Default 0: none. */
  readonly attenLogitCap?: number;
}

/** Attention whose projections begin as GShard's: variances 1 / (D H) of queries, 1 / D of keys and values, 1 / (N H) of the output. */
class GShardAttention extends DotProductAttention {
  protected override createProjection(
    name: string,
    overrides: Partial<ConfigValues<AttentionProjection>>,
  ): AttentionProjection {
    const { inputDim, numHeads } = this.hp;
    const fans: Readonly<Record<string, number>> = {
      query: inputDim * this.dimPerHead,
      post: numHeads * this.dimPerHead,
    };
    const scale = (fans[name] ?? inputDim) ** -0.5;
    return super.createProjection(name, { ...overrides, paramsInit: Gaussian.config({ scale }) } as never);
  }
}

/**
 * GLaM's network (Du et al., 2022): packed rows, relative biases in place of positions, an extra logit of 0 beside those of the
 * keys, RMS norms, no biases, gated GELU, GShard's embeddings and initial values; every second layer with experts where there are
 * any, in repeated blocks.
 */
export function glamLm(options: GlamOptions): Config<TransformerLm> {
  const { vocabSize, modelDims, hiddenDims, numHeads, dimPerHead, numLayers, numExperts = 0 } = options;
  if (numExperts > 0 && numLayers % 2 !== 0)
    throw new Error(`glamLm: expected an even number of layers where there are experts, got ${numLayers}.`);
  const perBlock = numExperts > 0 ? 2 : 1;
  const activationTpl = GELU.config();
  const layer = Transformer.config({
    lnTpl: RmsNorm.config(),
    trAttenTpl: GShardAttention.config({
      ...{ useBias: false, attentionExtraLogit: 0, attenLogitCap: options.attenLogitCap ?? 0 },
      ...{ internalEnableQueryScale: false, internalEnablePerDimScale: false },
      relativeBiasTpl: RelativeBias.config(),
    }),
    trFflayerTpl: TransformerFeedForward.config({
      ...{ hasBias: false, lnTpl: RmsNorm.config(), useGatedActivation: true, activationTpl },
      // GShard's bound, sqrt(3 / fan-in).
      fflayerTpl: FeedForward.config({
        linearTpl: Linear.config({ paramsInit: UniformUnitScaling.config() }),
      }),
    }),
  });
  const experts = TransformerFeedForwardMoe.config({
    ...{ hiddenDims: options.expertDims ?? hiddenDims, lnTpl: RmsNorm.config() },
    unadjustedExpertCapacityFactor: options.expertCapacityFactor ?? 0,
    expertCapacityDim: options.expertCapacityDim ?? 0,
    moeLoadBalanceLossWeight: options.moeLoadBalanceLossWeight ?? 0.01,
  });
  return TransformerLm.config({
    ...{ vocabSize, modelDims, packedInput: true, positionEmbTpl: null, finalLnTpl: RmsNorm.config() },
    softmaxTpl: GShardSharedEmbeddingSoftmax.config({ zLossWeight: options.zLossWeight ?? 1e-4 }),
    stackedTransformerTpl: StackedTransformerRepeated.config({
      ...{ xTimes: numLayers / perBlock, numLayers: perBlock, hiddenDims, numHeads, dimPerHead },
      ...{ transformerLayerParamsTpl: layer, moeLayerTpl: experts, numGroups: options.numGroups ?? 1 },
      ...(numExperts > 0 && { moeLayers: [0], numExperts }),
    }),
  });
}

/** Shape of a Grok model. */
export interface GrokOptions extends Omit<GlamOptions, 'attenLogitCap'> {
  /** Heads of keys and values. */
  readonly numKvHeads: number;
  /** Cap of the router's logits. Default 0: none. */
  readonly gatingLogitCap?: number;
}

/**
 * Grok's network as Pax builds it: GLaM's with experts in every layer, and with multi-query attention in the place of the other,
 * whose settings do not apply: it has biases, scaled queries, and no positions.
 */
export function grokLm({ numKvHeads, gatingLogitCap = 0, ...options }: GrokOptions): Config<TransformerLm> {
  return derive(glamLm(options), (lm) => {
    const stack = lm.stackedTransformerTpl;
    stack.transformerLayerParamsTpl.trAttenTpl = MultiQueryDotProductAttention.config({ numKvHeads });
    if (stack.numExperts > 0) stack.moeLayers = [0, 1];
    stack.moeLayerTpl.gatingLogitCap = gatingLogitCap;
  });
}
