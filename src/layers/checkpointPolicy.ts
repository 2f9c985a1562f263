/** @file Checkpoint policies of stacks: what each layer keeps for its gradient (praxis/base_layer.py, AutodiffCheckpointType). */
import { z } from 'zod';
import type { ops } from '../compiler/index.js';

/** Names that attention gives its tensors for policies. */
export type CheckpointName =
  | 'query_proj'
  | 'key_proj'
  | 'value_proj'
  | 'combined_qkv_proj'
  | 'context'
  | 'out_proj';

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
} as const satisfies Record<string, ops.CheckpointPolicy>;

type Name = keyof typeof CHECKPOINT_POLICIES;

/** Field that selects a policy. */
export const checkpointPolicyField = z
  .enum(Object.keys(CHECKPOINT_POLICIES) as [Name, ...Name[]])
  .default('SAVE_NOTHING')
  .describe(
    "With remat, what each layer keeps beside its input: nothing; all; the results of products; of products with a weight; the attention's projections, their sums, or its output.",
  );
