/** @file The context of a forward pass: weights, mode, randomness, summaries, auxiliary losses, decode state. */
import {
  isTensor,
  mapTree,
  type NarrowType,
  ops,
  type Tensor,
  type TensorSpec,
  type Tree,
} from '../../compiler/index.js';
import type { Taps } from './taps.js';

/** A loss that a layer adds to the model's own. */
export interface AuxLoss {
  /** Path of the layer and name of the loss. */
  readonly name: string;
  /** Scalar. */
  readonly value: Tensor;
  readonly weight: number;
}

/** Spec of a layer's state between the steps of a decode. */
export interface DecodeStateSpec extends TensorSpec {
  /** Storage to whose values all readers round it, or that has all of its values, so that memory may hold it so. */
  readonly roundedTo?: NarrowType;
  /** The axis of rows, which are sequences; 0 where absent. */
  readonly rowAxis?: number;
  /** Whether it has a place for each token, so that a step may read those of a prompt in its `promptState`. */
  readonly isPerToken?: boolean;
}

/** Inputs from the caller of layers, and containers that layers fill. */
export interface ContextOptions {
  /** Value of every variable that the layers read, by path. */
  readonly theta: Readonly<Record<string, Tensor>>;
  /** True while evaluating or decoding: no dropout. Default false. */
  readonly doEval?: boolean;
  /** int32 [2], from (seed, step); layers derive their keys from it. Required if a layer draws numbers. */
  readonly prngKey?: Tensor | undefined;
  /** float32 [B, …]: weights of a batch's rows, or of their positions. Rows without any count in no statistic of a batch. */
  readonly rowWeights?: Tensor | undefined;
  /** Receives summaries by name; if absent, none are computed. */
  readonly summaries?: Record<string, Tensor> | undefined;
  /** Receives summaries that are no scalars by name, which tells their kind (`mediaType`); if absent, none are computed. */
  readonly media?: Record<string, Tensor> | undefined;
  /** Highest verbosity of summaries to collect. Default 3, as in Pax. */
  readonly summaryVerbosity?: number;
  /** Receives the auxiliary losses. */
  readonly auxLosses?: AuxLoss[] | undefined;
  /** State of incremental decoding by path; layers read and replace theirs. */
  readonly decodeState?: Record<string, Tensor> | undefined;
  /**
   * State by path of prompts that several rows each continue, where steps have `promptLength`; rows' own state has places for
   * the tokens behind them. Nothing replaces it.
   */
  readonly promptState?: Readonly<Record<string, Tensor>> | undefined;
  /** Receives values that layers give non-trainable variables by `updateVar`, by path. */
  readonly updatedVars?: Record<string, Tensor>;
  /** Receives activations and their gradients; if absent, `tap` does nothing. */
  readonly taps?: Taps | undefined;
}

/** The context that layers see. */
export interface LayerContext extends Required<Omit<ContextOptions, 'auxLosses'>> {
  readonly auxLosses: AuxLoss[];
  /** Number of keys drawn by each layer, by its path. */
  readonly draws: Map<string, number>;
}

let current: LayerContext | undefined;

/** The context of the present forward pass; undefined outside `runInContext`. */
export const currentContext = (): LayerContext | undefined => current;

/**
 * Runs the synchronous function `fn`, which calls layers, with these weights and settings.
 *
 * @returns the result of `fn`.
 * @throws Error if `fn` returns a promise: the context would end before its layers ran.
 */
export function runInContext<T>(options: ContextOptions, fn: () => T): T {
  const outer = current;
  current = {
    theta: options.theta,
    doEval: options.doEval ?? false,
    prngKey: options.prngKey,
    rowWeights: options.rowWeights,
    summaries: options.summaries,
    media: options.media,
    summaryVerbosity: options.summaryVerbosity ?? 3,
    auxLosses: options.auxLosses ?? [],
    decodeState: options.decodeState,
    promptState: options.promptState,
    updatedVars: options.updatedVars ?? {},
    taps: options.taps,
    draws: new Map(),
  };
  try {
    const result = fn();
    if (result instanceof Promise) throw new Error('runInContext: the function must not be asynchronous.');
    return result;
  } finally {
    current = outer;
  }
}

/**
 * Runs a part of a model that training leaves alone, as in evaluation: without dropout, summaries and auxiliary losses, and
 * statistics of the batch replace nothing. No gradient passes through what it returns.
 */
export function runFrozen<T extends Tree<Tensor>>(fn: () => T): T {
  const { theta, rowWeights } = current!;
  return mapTree(runInContext({ theta, doEval: true, rowWeights }, fn), isTensor, (x) =>
    ops.stopGradient(x),
  ) as T;
}
