/** @file CLIP (Radford et al., 2021), and the names of its published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  Gaussian,
  TrainablePositionalEmbedding,
  TransformerTextEncoder,
  VisionTransformer,
  VitEntryLayers,
  VitExitLayers,
} from '../../layers/index.js';
import { ClipModel } from '../clipModel.js';
import { activationSetting } from './activationSettings.js';
import { encoderStack, layerNorm } from './layerNormStack.js';
import { linearRules, type NameRule, type NameRules, normRules, projectionRules } from './nameRules.js';

const count = z.int().positive();

/** What both towers have. */
const towerFields = {
  num_hidden_layers: count.default(12),
  hidden_act: activationSetting('quick_gelu'),
  layer_norm_eps: z.number().positive().default(1e-5),
  attention_dropout: z.number().min(0).lt(1).default(0),
  // That of a tower by itself.
  projection_dim: z.unknown().optional(),
};

const textSettings = z.object({
  ...towerFields,
  vocab_size: count.default(49_408),
  hidden_size: count.default(512),
  intermediate_size: count.default(2048),
  num_attention_heads: count.default(8),
  max_position_embeddings: count.default(77),
  eos_token_id: z.int().nonnegative().default(49_407),
});

const visionSettings = z.object({
  ...towerFields,
  hidden_size: count.default(768),
  intermediate_size: count.default(3072),
  num_attention_heads: count.default(12),
  num_channels: count.default(3),
  image_size: count.default(224),
  patch_size: count.default(32),
});

/** config.json of model_type clip; defaults are those of transformers' CLIPConfig. */
const settings = z.object({
  projection_dim: count.default(512),
  logit_scale_init_value: z.number().default(2.6592),
});

const towers = z.object({ text_config: textSettings, vision_config: visionSettings });

/** The fields of a schema that a tower's settings have, which are read alone: others are told as passed over. */
const fieldsOf = ({ shape }: z.ZodObject, tower: unknown): Record<string, unknown> => {
  const given = (tower ?? {}) as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    Object.keys(shape).flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])),
  );
};

/** A tower; early versions of transformers wrote its settings a second time, under a name that takes precedence. */
const tower = (schema: z.ZodObject, json: unknown, name: string): Record<string, unknown> => {
  const { [name]: first, [`${name}_dict`]: second } = (json ?? {}) as Readonly<Record<string, unknown>>;
  return { ...fieldsOf(schema, first), ...fieldsOf(schema, second) };
};

/**
 * Id of the end of text in the config.json files of CLIP's first publication, whose tokenizer has another one: there the largest
 * id of a text ends it.
 */
const MISTAKEN_END = 2;

const stackOf = (
  values: z.output<typeof textSettings> | z.output<typeof visionSettings>,
): ReturnType<typeof encoderStack> => {
  const stack = encoderStack(values);
  stack.attenDropoutProb = values.attention_dropout;
  return stack;
};

/** A causal transformer, whose output is that of the end of the text. */
function textTower(values: z.output<typeof textSettings>): Config<TransformerTextEncoder> {
  return TransformerTextEncoder.config({
    vocabSize: values.vocab_size,
    modelDims: values.hidden_size,
    causal: true,
    pooling: 'endOfText',
    endOfTextId: values.eos_token_id === MISTAKEN_END ? null : values.eos_token_id,
    positionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: values.max_position_embeddings }),
    stackedTransformerTpl: stackOf(values),
    finalLnTpl: layerNorm(values.layer_norm_eps),
  });
}

/** A transformer over patches and a class token, with norms before and behind the stack. */
function visionTower(values: z.output<typeof visionSettings>): Config<VisionTransformer> {
  const { hidden_size: dims, patch_size: patchSize, num_channels: channels } = values;
  const side = Math.floor(values.image_size / patchSize);
  const stack = stackOf(values);
  stack.modelDims = dims;
  return VisionTransformer.config({
    entryLayersTpl: VitEntryLayers.config({
      ...{ posEmbShapes: [side, side], patchSize, inputDims: patchSize ** 2 * channels, outputDims: dims },
      ...{ prependClsTokens: 1, posEmbOfClsTokens: true, inputFcHasBias: false },
      posEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: side ** 2 + 1 }),
      lnTpl: layerNorm(values.layer_norm_eps),
    }),
    transformerLayersTpl: stack,
    exitLayersTpl: VitExitLayers.config({
      ...{ hiddenDim: dims, useClsToken: true, outputFcTanh: false },
      lnTpl: layerNorm(values.layer_norm_eps),
    }),
  });
}

/** The model of a config.json of CLIP, of batches with `image`, and `text` with ids and paddings. @throws ZodError for settings that it has no counterpart of */
export function clipFromSettings(json: unknown): Config<ClipModel> {
  const { projection_dim, logit_scale_init_value } = settings.parse(json);
  const values = towers.parse({
    text_config: tower(textSettings, json, 'text_config'),
    vision_config: tower(visionSettings, json, 'vision_config'),
  });
  return ClipModel.config({
    imageTpl: visionTower(values.vision_config),
    imageDims: values.vision_config.hidden_size,
    textTpl: textTower(values.text_config),
    projectionDims: projection_dim,
    textField: 'text',
    temperature: Math.exp(-logit_scale_init_value),
    paramsInit: Gaussian.config({ scale: 0.02 }),
  });
}

const layerRules = (stack: string, tower: string): NameRule[] => {
  const [layer, tensor] = [`${stack}/x_layers_(\\d+)`, `${tower}.encoder.layers.{}`];
  return [
    ...normRules(`${layer}/layer_norm`, `${tensor}.layer_norm1`),
    ...projectionRules(`${layer}/self_attention`, `${tensor}.self_attn`, 'out_proj'),
    ...normRules(`${layer}/ff_layer/layer_norm`, `${tensor}.layer_norm2`),
    ...linearRules(`${layer}/ff_layer/ffn_layer1`, `${tensor}.mlp.fc1`),
    ...linearRules(`${layer}/ff_layer/ffn_layer2`, `${tensor}.mlp.fc2`),
  ];
};

const [entry, patches] = ['image_encoder/entry_stack', 'vision_model.embeddings'];

/** Names of CLIP's weights. */
export const clipNames: NameRules = {
  rules: [
    [`${entry}/patch_projection/linear/w`, `${patches}.patch_embedding.weight`, 'd c p q -> (p q c) d'],
    [`${entry}/prepend_cls_embs`, `${patches}.class_embedding`, 'd -> 1 1 d'],
    [`${entry}/pos_emb/emb_var`, `${patches}.position_embedding.weight`],
    // transformers has it spelt so.
    ...normRules(`${entry}/ln`, 'vision_model.pre_layrnorm'),
    ...layerRules('image_encoder/transformers_stack', 'vision_model'),
    ...normRules('image_encoder/exit_stack/ln', 'vision_model.post_layernorm'),
    ['image_projection/w', 'visual_projection.weight', 'o i -> i o'],
    ['text_encoder/embedding_lookup/emb_var', 'text_model.embeddings.token_embedding.weight'],
    ['text_encoder/position_emb/emb_var', 'text_model.embeddings.position_embedding.weight'],
    ...layerRules('text_encoder/transformer', 'text_model'),
    ...normRules('text_encoder/final_ln', 'text_model.final_layer_norm'),
    ['text_projection/w', 'text_projection.weight', 'o i -> i o'],
    ['logit_scale', 'logit_scale'],
  ],
  prefixes: [],
  buffers: ['(text|vision)_model\\.embeddings\\.position_ids'],
  copies: {},
};
