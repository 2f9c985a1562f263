/** @file BERT: masked language models, classifiers and encoders of texts, and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  FeedForward,
  FullSoftmax,
  Gaussian,
  MaskedLmSoftmax,
  Tanh,
  TokenTypeEmbedding,
  TrainablePositionalEmbedding,
  TransformerLm,
  TransformerTextEncoder,
} from '../../layers/index.js';
import type { BaseModel } from '../baseModel.js';
import { BertModel } from '../bertModel.js';
import { ClassificationModel } from '../classificationModel.js';
import { TextEmbeddingModel } from '../textEmbedding.js';
import { activationOf, activationSetting } from './activationSettings.js';
import { encoderStack, layerNorm } from './layerNormStack.js';
import { attentionRules, LAYER, linearRules, type NameRule, type NameRules, normRules } from './nameRules.js';
import { sentencePooling } from './sentencePooling.js';

const count = z.int().positive();
const probability = z.number().min(0).lt(1);

/** Networks over BERT's stack, by `architectures` of config.json. */
const architectures = {
  BertModel: embeddingModel,
  BertForMaskedLM: maskedLm,
  BertForPreTraining: maskedLm,
  BertForSequenceClassification: classifier,
};
type Architecture = keyof typeof architectures;

/** config.json of model_type bert; defaults are those of transformers' BertConfig. */
const settings = z.object({
  architectures: z
    .tuple([z.enum(Object.keys(architectures) as [Architecture, ...Architecture[]])])
    .default(['BertForMaskedLM']),
  vocab_size: count.default(30_522),
  hidden_size: count.default(768),
  num_hidden_layers: count.default(12),
  num_attention_heads: count.default(12),
  intermediate_size: count.default(3072),
  hidden_act: activationSetting('gelu'),
  hidden_dropout_prob: probability.default(0.1),
  attention_probs_dropout_prob: probability.default(0.1),
  max_position_embeddings: count.default(512),
  type_vocab_size: count.default(2),
  initializer_range: z.number().nonnegative().default(0.02),
  layer_norm_eps: z.number().positive().default(1e-12),
  position_embedding_type: z.literal('absolute').default('absolute'),
  is_decoder: z.literal(false).default(false),
  add_cross_attention: z.literal(false).default(false),
  tie_word_embeddings: z.literal(true).default(true),
  problem_type: z.literal('single_label_classification').nullish(),
  id2label: z.record(z.string(), z.string()).nullish(),
});

type Settings = z.output<typeof settings>;

/** The model of a config.json of BERT, by its `architectures`. @throws ZodError for settings that it has no counterpart of */
export function bertFromSettings(json: unknown, folder: string): Config<BaseModel> {
  const values = settings.parse(json);
  return architectures[values.architectures[0]](values, folder);
}

/** The templates that all networks of BERT have, with norms behind the residual connections. */
function partsOf(values: Settings) {
  const stack = encoderStack(values);
  stack.transformerLayerParamsTpl.normPolicy = 'post_skip';
  stack.inputDropoutProb = values.hidden_dropout_prob;
  stack.residualDropoutProb = values.hidden_dropout_prob;
  stack.attenDropoutProb = values.attention_probs_dropout_prob;
  const lnTpl = layerNorm(values.layer_norm_eps);
  return {
    vocabSize: values.vocab_size,
    modelDims: values.hidden_size,
    positionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: values.max_position_embeddings }),
    tokenTypeEmbTpl: TokenTypeEmbedding.config({ numTypes: values.type_vocab_size, lnTpl }),
    stackedTransformerTpl: stack,
    finalLnTpl: null,
    paramsInit: Gaussian.config({ scale: values.initializer_range }),
  };
}

function maskedLm(values: Settings): Config<BaseModel> {
  const activationTpl = activationOf(values.hidden_act);
  const softmaxTpl = MaskedLmSoftmax.config({
    transformTpl: FeedForward.config({ activationTpl }),
    transformLnTpl: layerNorm(values.layer_norm_eps),
  });
  const lmTpl = TransformerLm.config({
    ...partsOf(values),
    ...{ modelType: 'bidirectional', packedInput: true, softmaxTpl },
  });
  return BertModel.config({ lmTpl });
}

function embeddingModel(values: Settings, folder: string): Config<BaseModel> {
  const { pooling, normalized } = sentencePooling(folder);
  const encoderTpl = TransformerTextEncoder.config({ ...partsOf(values), pooling });
  return TextEmbeddingModel.config({ encoderTpl, normalized });
}

/** Two classes, unless id2label has others. */
function classifier(values: Settings): Config<BaseModel> {
  const networkTpl = TransformerTextEncoder.config({
    ...partsOf(values),
    ...{ pooling: 'first', poolerTpl: FeedForward.config({ activationTpl: Tanh.config() }) },
  });
  const numClasses = values.id2label ? Object.keys(values.id2label).length : 2;
  const softmaxTpl = FullSoftmax.config({ inputDims: values.hidden_size, numClasses });
  return ClassificationModel.config({
    ...{ networkTpl, softmaxTpl },
    ...{ inputField: 'text.ids', paddingsField: 'text.paddings', labelField: 'labels' },
  });
}

/** A norm's rules, with the names of its weights before 2019 too. */
const norms = (variable: string, tensor: string): NameRule[] => [
  ...normRules(variable, tensor),
  [`${variable}/scale`, `${tensor}.gamma`],
  [`${variable}/bias`, `${tensor}.beta`],
];

const attention = `${LAYER}/self_attention`;
const encoder = 'encoder.layer.{}';

/** Names of BERT's weights. */
export const bertNames: NameRules = {
  rules: [
    ['.*/embedding_lookup/emb_var', 'embeddings.word_embeddings.weight'],
    ['.*/softmax/w', 'embeddings.word_embeddings.weight'],
    ['.*/position_emb/emb_var', 'embeddings.position_embeddings.weight'],
    ['.*/token_type_emb/emb_var', 'embeddings.token_type_embeddings.weight'],
    ...norms('.*/token_type_emb/layer_norm', 'embeddings.LayerNorm'),
    ...attentionRules(
      attention,
      (part) => `${encoder}.attention.self.${part}`,
      `${encoder}.attention.output.dense`,
    ),
    ...norms(`${LAYER}/layer_norm`, `${encoder}.attention.output.LayerNorm`),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1`, `${encoder}.intermediate.dense`),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer2`, `${encoder}.output.dense`),
    ...norms(`${LAYER}/ff_layer/layer_norm`, `${encoder}.output.LayerNorm`),
    ...linearRules('.*/pooler', 'pooler.dense'),
    ...linearRules('.*/softmax/transform', 'cls.predictions.transform.dense'),
    ...norms('.*/softmax/transform_ln', 'cls.predictions.transform.LayerNorm'),
    ['.*/softmax/bias/b', 'cls.predictions.bias'],
    ...linearRules('softmax/logits_ffn', 'classifier'),
  ],
  prefixes: ['bert.'],
  buffers: ['embeddings\\.position_ids'],
  kept: ['pooler\\..*', 'cls\\..*'],
  copies: {
    'cls.predictions.decoder.weight': 'embeddings.word_embeddings.weight',
    'cls.predictions.decoder.bias': 'cls.predictions.bias',
  },
};
