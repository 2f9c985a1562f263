/** @file Stacks of layers as in GPT-2: layer norms before the branches, and full scales of queries. */
import type { Config } from '../../hparams/index.js';
import { type BaseActivation, LayerNorm, StackedTransformer } from '../../layers/index.js';
import { activationOf } from './activationSettings.js';

/** Shape of a stack. */
export interface LayerNormStackOptions {
  readonly numLayers: number;
  readonly numHeads: number;
  /** Hidden depth of the feed-forward layers. */
  readonly hiddenDims: number;
  readonly activationTpl: Config<BaseActivation>;
  /** Added to the variance of norms. */
  readonly normEpsilon: number;
  /** Whether matrix products and norms have biases. Default true. */
  readonly useBias?: boolean;
}

/** A norm whose scale starts at 1. */
export const layerNorm = (epsilon: number, useBias = true): Config<LayerNorm> =>
  LayerNorm.config({ epsilon, directScale: true, useBias });

/** A stack without dropout, whose logits are divided by the square root of a head's depth. */
export function layerNormStack(options: LayerNormStackOptions): Config<StackedTransformer> {
  const { numLayers, numHeads, hiddenDims, activationTpl, normEpsilon, useBias = true } = options;
  const stack = StackedTransformer.config({ numLayers, hiddenDims, numHeads });
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = layerNorm(normEpsilon, useBias);
  layer.trAttenTpl.useBias = useBias;
  layer.trAttenTpl.internalEnablePerDimScale = false;
  layer.trAttenTpl.scaleQueryByDimPerHead = true;
  layer.trFflayerTpl.lnTpl = layerNorm(normEpsilon, useBias);
  layer.trFflayerTpl.hasBias = useBias;
  layer.trFflayerTpl.activationTpl = activationTpl;
  return stack;
}

/** Settings of encoders, as config.json of BERT, ViT and CLIP names them. */
interface EncoderSettings {
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly intermediate_size: number;
  readonly hidden_act: Parameters<typeof activationOf>[0];
  readonly layer_norm_eps: number;
}

/** The stack of an encoder's settings, without dropout. */
export const encoderStack = (values: EncoderSettings): Config<StackedTransformer> =>
  layerNormStack({
    numLayers: values.num_hidden_layers,
    numHeads: values.num_attention_heads,
    hiddenDims: values.intermediate_size,
    activationTpl: activationOf(values.hidden_act),
    normEpsilon: values.layer_norm_eps,
  });
