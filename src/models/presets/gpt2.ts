/** @file GPT-2 style language models, and the names of their published weights. */
import { z } from 'zod';
import { type Config, derive } from '../../hparams/index.js';
import {
  Gaussian,
  GELU,
  NClassMajorSharedEmbeddingSoftmax,
  TrainablePositionalEmbedding,
  TransformerLm,
} from '../../layers/index.js';
import { layerNorm, layerNormStack } from './layerNormStack.js';
import { LAYER, type NameRules, normRules } from './nameRules.js';

/** Shape of a GPT-2 style model. */
export interface Gpt2Options {
  readonly vocabSize: number;
  readonly modelDims: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Longest sequence. */
  readonly maxSeqLength: number;
  /** Hidden depth of the feed-forward layers; 4 modelDims where absent. */
  readonly hiddenDims?: number;
  /** Whether matrix products and norms have biases. Default false, as nanoGPT trains it. */
  readonly useBias?: boolean;
  /** Probability of dropout of embeddings, attention weights and branch outputs. Default 0. */
  readonly dropoutProb?: number;
  /** The exact GELU, as nanoGPT has it and by default, or the tanh formula of GPT-2 itself. */
  readonly gelu?: 'exact' | 'tanh';
  /** Added to the variance of norms. Default 1e-5. */
  readonly normEpsilon?: number;
}

/**
 * GPT-2's network (Radford et al., 2019), as nanoGPT builds it: trained positions, norms before the branches and at
 * the end, exact GELU unless `gelu` says otherwise, embeddings tied to the softmax, and GPT-2's initialisation.
 */
export function gpt2Lm(options: Gpt2Options): Config<TransformerLm> {
  const { vocabSize, modelDims, numLayers, numHeads, maxSeqLength } = options;
  const { hiddenDims = 4 * modelDims, useBias = false, dropoutProb = 0 } = options;
  const { gelu = 'exact', normEpsilon = 1e-5 } = options;
  const stack = layerNormStack({
    ...{ numLayers, hiddenDims, numHeads, useBias, normEpsilon },
    activationTpl: GELU.config({ approximate: gelu === 'tanh' }),
  });
  stack.dropoutProb = dropoutProb;
  stack.reluDropoutProb = 0;
  stack.inputDropoutProb = dropoutProb;
  return gpt2Init(
    TransformerLm.config({
      vocabSize,
      modelDims,
      positionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength }),
      stackedTransformerTpl: stack,
      softmaxTpl: NClassMajorSharedEmbeddingSoftmax.config({ hasBias: false }),
      finalLnTpl: layerNorm(normEpsilon, useBias),
    }),
  );
}

/**
 * `lm` with GPT-2's initialisation: N(0, 0.02^2) for every matrix and table, and 0.02 / sqrt(2 numLayers) for the two
 * projections of each layer that write to the residual stream. Norms and biases keep 1 and 0.
 */
export function gpt2Init(lm: Config<TransformerLm>): Config<TransformerLm> {
  return derive(lm, (p) => {
    p.paramsInit = Gaussian.config({ scale: 0.02 });
    const { numLayers, transformerLayerParamsTpl: layer } = p.stackedTransformerTpl;
    const residual = Gaussian.config({ scale: 0.02 / Math.sqrt(2 * numLayers) });
    layer.trAttenTpl.outputProjInit = residual;
    layer.trFflayerTpl.outputProjInit = residual;
  });
}

const count = z.int().positive();
const probability = z.number().min(0).lt(1).default(0.1);

/** config.json of model_type gpt2; defaults are those of transformers' GPT2Config. */
export const gpt2Schema = z.object({
  vocab_size: count.default(50_257),
  n_embd: count.default(768),
  n_layer: count.default(12),
  n_head: count.default(12),
  n_positions: count.default(1024),
  n_inner: count.nullish(),
  activation_function: z.enum(['gelu_new', 'gelu_pytorch_tanh', 'gelu']).default('gelu_new'),
  layer_norm_epsilon: z.number().positive().default(1e-5),
  resid_pdrop: probability,
  embd_pdrop: probability,
  attn_pdrop: probability,
  scale_attn_weights: z.literal(true).default(true),
  scale_attn_by_inverse_layer_idx: z.literal(false).default(false),
  add_cross_attention: z.literal(false).default(false),
  tie_word_embeddings: z.literal(true).default(true),
});

/** The network of a config.json of GPT-2. @throws ZodError for settings that it has no counterpart of */
export function gpt2FromSettings(json: unknown): Config<TransformerLm> {
  const values = gpt2Schema.parse(json);
  const lm = gpt2Lm({
    vocabSize: values.vocab_size,
    modelDims: values.n_embd,
    numLayers: values.n_layer,
    numHeads: values.n_head,
    maxSeqLength: values.n_positions,
    ...(values.n_inner != null && { hiddenDims: values.n_inner }),
    useBias: true,
    gelu: values.activation_function === 'gelu' ? 'exact' : 'tanh',
    normEpsilon: values.layer_norm_epsilon,
  });
  const stack = lm.stackedTransformerTpl;
  stack.residualDropoutProb = values.resid_pdrop;
  stack.inputDropoutProb = values.embd_pdrop;
  stack.attenDropoutProb = values.attn_pdrop;
  return lm;
}

const attention = `${LAYER}/self_attention`;

/** Names of GPT-2's weights. Its linear layers are stored as [in, out] (Conv1D), and query, key and value as one of them. */
export const gpt2Names: NameRules = {
  rules: [
    ['.*/softmax/w', 'wte.weight'],
    ['.*/softmax/logits_ffn/linear/w', 'lm_head.weight', 'v d -> d v'],
    ['.*/softmax/logits_ffn/linear/w', 'wte.weight', 'v d -> d v'],
    ['.*/embedding_lookup/emb_var', 'wte.weight'],
    ['.*/position_emb/emb_var', 'wpe.weight'],
    ...normRules('.*/final_ln', 'ln_f'),
    ...normRules(`${LAYER}/layer_norm`, 'h.{}.ln_1'),
    [`${attention}/combined_qkv/w`, 'h.{}.attn.c_attn.weight', 'd (3 n h) -> 3 d n h'],
    [`${attention}/combined_qkv/b`, 'h.{}.attn.c_attn.bias', '(3 n h) -> 3 n h'],
    ...['query', 'key', 'value'].flatMap((part, i): NameRules['rules'] => [
      [`${attention}/${part}/w`, 'h.{}.attn.c_attn.weight', `d (${i}/3 n h) -> d n h`],
      [`${attention}/${part}/b`, 'h.{}.attn.c_attn.bias', `(${i}/3 n h) -> n h`],
    ]),
    [`${attention}/post/w`, 'h.{}.attn.c_proj.weight', '(n h) d -> d n h'],
    [`${attention}/post/b`, 'h.{}.attn.c_proj.bias'],
    ...normRules(`${LAYER}/ff_layer/layer_norm`, 'h.{}.ln_2'),
    ...['c_fc', 'c_proj'].flatMap((tensor, i): NameRules['rules'] => [
      [`${LAYER}/ff_layer/ffn_layer${i + 1}/linear/w`, `h.{}.mlp.${tensor}.weight`],
      [`${LAYER}/ff_layer/ffn_layer${i + 1}/bias/b`, `h.{}.mlp.${tensor}.bias`],
    ]),
  ],
  prefixes: ['transformer.'],
  buffers: ['h\\.\\d+\\.attn\\.(bias|masked_bias)'],
  copies: { 'lm_head.weight': 'wte.weight' },
};
