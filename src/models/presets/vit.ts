/** @file Vision transformers that classify images (Dosovitskiy et al., 2021), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  FullSoftmax,
  Gaussian,
  TrainablePositionalEmbedding,
  VisionTransformer,
  VitEntryLayers,
  VitExitLayers,
} from '../../layers/index.js';
import { ClassificationModel } from '../classificationModel.js';
import { activationSetting } from './activationSettings.js';
import { encoderStack, layerNorm } from './layerNormStack.js';
import { attentionRules, linearRules, type NameRules, normRules } from './nameRules.js';

const count = z.int().positive();
const probability = z.number().min(0).lt(1).default(0);

/** config.json of model_type vit; defaults are those of transformers' ViTConfig. */
const settings = z.object({
  architectures: z.tuple([z.literal('ViTForImageClassification')]).default(['ViTForImageClassification']),
  hidden_size: count.default(768),
  num_hidden_layers: count.default(12),
  num_attention_heads: count.default(12),
  intermediate_size: count.default(3072),
  hidden_act: activationSetting('gelu'),
  hidden_dropout_prob: probability,
  attention_probs_dropout_prob: probability,
  initializer_range: z.number().nonnegative().default(0.02),
  layer_norm_eps: z.number().positive().default(1e-12),
  image_size: count.default(224),
  patch_size: count.default(16),
  num_channels: count.default(3),
  qkv_bias: z.literal(true).default(true),
  problem_type: z.literal('single_label_classification').nullish(),
  id2label: z.record(z.string(), z.string()).nullish(),
});

/**
 * The classifier of a config.json of ViT, of the batches of `ImageInput`: two classes, unless id2label has others. Images are
 * normalized as the published model had them, which preprocessor_config.json tells.
 *
 * @throws ZodError for settings that it has no counterpart of
 */
export function vitFromSettings(json: unknown): Config<ClassificationModel> {
  const values = settings.parse(json);
  const { hidden_size: dims, patch_size: patchSize, hidden_dropout_prob: dropoutProb } = values;
  const side = Math.floor(values.image_size / patchSize);
  const stack = encoderStack(values);
  stack.modelDims = dims;
  stack.residualDropoutProb = dropoutProb;
  stack.attenDropoutProb = values.attention_probs_dropout_prob;
  const networkTpl = VisionTransformer.config({
    entryLayersTpl: VitEntryLayers.config({
      ...{ posEmbShapes: [side, side], patchSize, inputDims: patchSize ** 2 * values.num_channels },
      ...{ outputDims: dims, prependClsTokens: 1, posEmbOfClsTokens: true, posEmbDropoutProb: dropoutProb },
      posEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: side ** 2 + 1 }),
    }),
    transformerLayersTpl: stack,
    exitLayersTpl: VitExitLayers.config({
      ...{ hiddenDim: dims, useClsToken: true, outputFcTanh: false },
      lnTpl: layerNorm(values.layer_norm_eps),
    }),
  });
  const numClasses = values.id2label ? Object.keys(values.id2label).length : 2;
  return ClassificationModel.config({
    networkTpl,
    softmaxTpl: FullSoftmax.config({ inputDims: dims, numClasses }),
    ...{ inputField: 'inputs', labelField: 'labels' },
    paramsInit: Gaussian.config({ scale: values.initializer_range }),
  });
}

const [entry, layer] = ['network/entry_stack', 'network/transformers_stack/x_layers_(\\d+)'];
const [attention, tensor] = [`${layer}/self_attention`, 'encoder.layer.{}'];

/** Names of ViT's weights. */
export const vitNames: NameRules = {
  rules: [
    [
      `${entry}/patch_projection/linear/w`,
      'embeddings.patch_embeddings.projection.weight',
      'd c p q -> (p q c) d',
    ],
    [`${entry}/patch_projection/bias/b`, 'embeddings.patch_embeddings.projection.bias'],
    [`${entry}/prepend_cls_embs`, 'embeddings.cls_token'],
    [`${entry}/pos_emb/emb_var`, 'embeddings.position_embeddings', '1 n d -> n d'],
    ...attentionRules(
      attention,
      (part) => `${tensor}.attention.attention.${part}`,
      `${tensor}.attention.output.dense`,
    ),
    ...normRules(`${layer}/layer_norm`, `${tensor}.layernorm_before`),
    ...normRules(`${layer}/ff_layer/layer_norm`, `${tensor}.layernorm_after`),
    ...linearRules(`${layer}/ff_layer/ffn_layer1`, `${tensor}.intermediate.dense`),
    ...linearRules(`${layer}/ff_layer/ffn_layer2`, `${tensor}.output.dense`),
    ...normRules('network/exit_stack/ln', 'layernorm'),
    ...linearRules('softmax/logits_ffn', 'classifier'),
  ],
  prefixes: ['vit.'],
  buffers: [],
  copies: {},
};
