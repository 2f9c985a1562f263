/** @file Fields of dot-product attention (praxis/layers/attentions.py). */
import { z } from 'zod';
import { sub } from '../../hparams/index.js';
import { WeightInit } from '../core/weightInit.js';
import { BaseNormalization } from '../normalizations.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { BasePositionBias } from './biases.js';
import { BaseKvCache, FullCache, windowSizeField } from './caches.js';
import { CausalDepthwiseConv1D } from './causalDepthwise.js';
import { KeyValuePrefix } from './keyValuePrefix.js';
import { AttentionProjection, CombinedQKVProjectionLayer } from './projections.js';
import { RotaryPositionalEmbedding } from './rotations.js';

/** Depth of a head; defaults to `dims`, the field with the depth of all heads, divided by numHeads. */
export const dimPerHeadField = (dims: string) =>
  z.int().positive().nullable().default(null).describe(`Depth of a head; null: ${dims} / numHeads.`);

/** How vectors become heads, and heads vectors. */
const headFields = {
  hiddenDim: z.int().positive().describe('Depth of all heads together.'),
  numHeads: z.int().positive().default(1).describe('Number of heads.'),
  dimPerHead: dimPerHeadField('hiddenDim'),
  projTpl: sub(AttentionProjection).describe(
    'Projections of query, key and value, and the output projection.',
  ),
  combineQkv: z
    .boolean()
    .default(false)
    .describe('Whether query, key and value projections are one variable.'),
  combinedQkvProjTpl: sub(CombinedQKVProjectionLayer).describe('The projection where combineQkv is set.'),
  useBias: z.boolean().default(true).describe('Whether projections have biases.'),
  useKeyBias: z
    .boolean()
    .default(true)
    .describe('Whether that of keys is among them: its bias moves all logits of a query alike.'),
  useOutputBias: z.boolean().default(true).describe('Whether the output projection is among them.'),
  outputProjInit: sub(WeightInit, null)
    .optional()
    .describe("Initial values of the output projection's weights; projTpl's where absent."),
  useOutputGate: z
    .boolean()
    .default(false)
    .describe('Multiply the weighted sums by the sigmoid of another projection of the query vectors.'),
  dconvQkv: z
    .boolean()
    .default(false)
    .describe('Whether a causal depthwise convolution follows the projections; for self-attention.'),
  dconvKernelSize: z.int().positive().default(3).describe('Positions that this convolution sees.'),
  causalDepthwiseConv1dTpl: sub(CausalDepthwiseConv1D).describe('The convolution.'),
  useRotaryPositionEmb: z
    .boolean()
    .default(false)
    .describe('Whether queries and keys are rotated by position.'),
  rotaryPositionEmbTpl: sub(RotaryPositionalEmbedding).describe('The rotation.'),
  lnTpl: sub(BaseNormalization, null)
    .nullable()
    .default(null)
    .describe('Norm of queries and of keys over the depth of a head; null: none.'),
  normBeforeRotary: z
    .boolean()
    .default(false)
    .describe('Whether the norms come before the rotation, as in Qwen 3; Pax has them behind it.'),
  normAllHeads: z
    .boolean()
    .default(false)
    .describe('Whether the norms are over the depth of all heads together, as in OLMo 2.'),
};

/** How heads become weighted sums. */
const weightFields = {
  dropoutTpl: sub(Dropout).describe('Dropout of attention weights; keepProb is 1 - attenDropoutProb.'),
  attenDropoutProb: dropoutField('an attention weight'),
  internalEnableQueryScale: z.boolean().default(true).describe('Whether queries are scaled.'),
  internalEnablePerDimScale: z
    .boolean()
    .default(true)
    .describe(
      'Scale queries by a trained factor for each dimension; else by 1 / sqrt(hiddenDim / numHeads).',
    ),
  scaleQueryByDimPerHead: z
    .boolean()
    .default(false)
    .describe('Without the trained factor: scale by 1 / sqrt(dimPerHead), where dimPerHead is given.'),
  scaleLogitsByHeadDims: z
    .boolean()
    .default(false)
    .describe('Whether logits are divided by sqrt(dimPerHead).'),
  attenLogitCap: z.number().nonnegative().default(0).describe('c > 0: logits become c tanh(logits / c).'),
  relativeBiasTpl: sub(BasePositionBias, null)
    .nullable()
    .default(null)
    .describe(
      'What is added to the logits, before the cap, by the distance of query and key; null: nothing.',
    ),
  attentionExtraLogit: z
    .number()
    .nullable()
    .default(null)
    .describe('A logit beside those of the keys, whose weight is for no value; null: none.'),
  useSinks: z
    .boolean()
    .default(false)
    .describe('Such a logit for each head, trained from 0 (sinks, as in gpt-oss).'),
  prefixTpl: sub(KeyValuePrefix, null)
    .nullable()
    .default(null)
    .describe('Trained keys and values in front of those of the sequence (prefix tuning); null: none.'),
  windowSize: windowSizeField,
  cacheTpl: sub(BaseKvCache, () => FullCache.config()).describe(
    'The cache of keys and values in a decode, such as WindowCache, which keeps those of the window alone.',
  ),
};

/** The fields. */
export const attentionFields = { ...headFields, ...weightFields };
