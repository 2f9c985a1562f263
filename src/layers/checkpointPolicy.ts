/** @file Checkpoint policies of stacks: what each layer keeps for its gradient (praxis/base_layer.py, AutodiffCheckpointType). */
import { z } from 'zod';
import { ops, type Tensor } from '../compiler/index.js';

/** Names that layers give their tensors for policies: attention, feed-forward layers, transformers, blocks of U-Nets. */
export type CheckpointName =
  | 'query_proj'
  | 'key_proj'
  | 'value_proj'
  | 'combined_qkv_proj'
  | 'context'
  | 'out_proj'
  | 'ffn1'
  | 'ffn2'
  | 'transformer_layer_out'
  | 'conv_0'
  | 'conv_1'
  | 'conv_out';

/** `tensor`, which policies with its name keep. */
export const checkpointName = (tensor: Tensor, name: CheckpointName): Tensor =>
  ops.checkpointName(tensor, name);

const PROJECTIONS = ['combined_qkv_proj', 'query_proj', 'key_proj', 'value_proj'] as const;

const named = (...names: CheckpointName[]): ops.CheckpointPolicy => names;

/** Pax's policies, as far as there are layers for them. */
export const CHECKPOINT_POLICIES = {
  SAVE_NOTHING: 'nothing',
  SAVE_EVERYTHING: 'everything',
  SAVE_DOT_ONLY: 'dots',
  SAVE_DOT_WITH_NO_BATCH_DIM: 'dotsWithNoBatchDims',
  SAVE_QKV_OUT_PROJ: named('combined_qkv_proj', 'out_proj'),
  SAVE_QKV_OUT_PROJ_SEPARATE: named('query_proj', 'key_proj', 'value_proj', 'out_proj'),
  SAVE_OUT_PROJ: named('out_proj'),
  SAVE_CONTEXT: named('context'),
  SAVE_CONTEXT_AND_OUT_PROJ: named('context', 'out_proj'),
  SAVE_DOT_FOR_MLPERF_200B: named(...PROJECTIONS, 'context', 'out_proj'),
  SAVE_DOT_EXCEPT_LOGITS_FFN1: named(...PROJECTIONS, 'context', 'out_proj', 'ffn2'),
  SAVE_DOT_EXCEPT_LOGITS: named(...PROJECTIONS, 'context', 'out_proj', 'ffn1', 'ffn2'),
  // The input of a call is always kept.
  SAVE_ITERATION_INPUT: 'nothing',
  SAVE_TRANSFORMER_LAYER_OUTPUT: named('transformer_layer_out'),
  SAVE_UNET_CONV: named('conv_out'),
  SAVE_UNET_ALL_CONV: named('conv_0', 'conv_1', 'conv_out'),
} as const satisfies Record<string, ops.CheckpointPolicy>;

type Name = keyof typeof CHECKPOINT_POLICIES;

/** Field that selects a policy. */
export const checkpointPolicyField = z
  .enum(Object.keys(CHECKPOINT_POLICIES) as [Name, ...Name[]])
  .default('SAVE_NOTHING')
  .describe(
    "With remat, what each layer keeps beside its input: nothing; all; the results of products; of products with a weight; the attention's projections, their sums, or its output; those of feed-forward layers; of a U-Net's convolutions.",
  );
