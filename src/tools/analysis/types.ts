/** @file What can be said of an experiment's model without allocating it. */

import type { Precision } from '../../compiler/index.js';

/** One variable of the model. */
export interface VariableSummary {
  /** Its path, as in checkpoints: `lm/transformer/x_layers_0/…`. */
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  readonly trainable: boolean;
}

/** One layer of the model, in the order in which the model holds them. */
export interface LayerSummary {
  /** Its path; the empty string is the model itself. */
  readonly path: string;
  /** The class. */
  readonly type: string;
  /** How many layers are around it. */
  readonly depth: number;
  /**
   * Shape of what its fprop returned when the step was traced on the batch of one host: of the first tensor, where it
   * returned several. Absent for a layer that was not called.
   */
  readonly outputShape?: readonly number[];
  /** Values in variables of its own. */
  readonly ownParameters: number;
  /** Values in variables of its own, and in those of the layers below it: each variable once. */
  readonly parameters: number;
  /** FLOPs of the forward pass over a global batch, those of the layers below it included. */
  readonly flops: number;
  /** Bytes that its forward pass writes and the backward pass reads again, those of the layers below it included. */
  readonly activationBytes: number;
}

/** Bytes that a training step holds at once, on one host: nothing is spread over devices, nothing is computed twice. */
export interface TrainingMemory {
  readonly variables: number;
  /** Of all variables, those included that do not train: gradients lie in a buffer like the variables'. */
  readonly gradients: number;
  /** Slots of the optimizer, and what else it holds between its passes. */
  readonly optimizer: number;
  /** The most that the batch and the values of forward and backward pass take at one time. */
  readonly activations: number;
  readonly total: number;
}

/** What an experiment's model is, and what a training step of it costs. */
export interface Analysis {
  readonly parameters: number;
  readonly trainableParameters: number;
  readonly variables: readonly VariableSummary[];
  readonly layers: readonly LayerSummary[];
  /** Tokens of a global batch, or its examples where it has no token ids: what a step trains on. */
  readonly tokensPerStep: number;
  /** What `tokensPerStep` counts. */
  readonly unit: 'tokens' | 'examples';
  /** FLOPs of the forward pass for a token. */
  readonly forwardFlopsPerToken: number;
  /** FLOPs of a training step, PaLM's: three times those of the forward pass. */
  readonly flopsPerStep: number;
  /** In which most of the products multiply. */
  readonly precision: Precision;
  readonly memory: TrainingMemory;
}
