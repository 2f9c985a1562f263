/** @file The model of a decode as decoders see it: positions in, logits or drawn tokens out. */
import type { HostTensor } from '../compiler/index.js';
import type { TokenBits } from './constraints/index.js';
import type { RowSettings } from './sampledIds.js';

/** A host tensor of whole numbers. */
export interface Int32Tensor extends HostTensor {
  readonly dtype: 'int32';
  readonly data: Int32Array;
}

/** A host tensor of real numbers. */
export interface Float32Tensor extends HostTensor {
  readonly dtype: 'float32';
  readonly data: Float32Array;
}

/**
 * One position of a model that keeps its own cache.
 *
 * @param ids tokens at position `timeStep`, [rows]; overwritten after the promise is fulfilled.
 * @param timeStep position in the sequence: 0, 1, 2 …; after `prefill` of whole prompts, steps from their last tokens.
 * @returns logits of the next position, [rows * V], row by row; read before the next call.
 */
export type ExtendStep = (ids: Int32Array, timeStep: number) => Promise<Float32Array>;

/** The tokens of several positions. */
export interface DrawnIds {
  /** [count, rows]. */
  readonly ids: Int32Array;
  /** Their log-probabilities, [count, rows]. */
  readonly logprobs: Float32Array;
  /** Of a rule with `entropy`: that of the distribution at each, [count, rows]. */
  readonly entropies?: Float32Array | undefined;
  /** Of a rule with `topLogprobs` n: the likeliest ids at each, [count, rows, n], and their log-probabilities. */
  readonly topIds?: Int32Array | undefined;
  readonly topLogprobs?: Float32Array | undefined;
}

/** The tokens of rows so far. */
export interface RowTokens {
  /** [rows, seqlen], up to the present position of each row. */
  readonly ids: Int32Array;
  /** Tokens of each prompt, [rows]. */
  readonly promptLengths: Int32Array;
}

/** The tokens that each row may draw; undefined for all. */
export type AllowedTokens = readonly (TokenBits | undefined)[];

/** Inputs of drawing besides logits, of rows. */
export interface RowInputs {
  /** Of rules with adjustments. */
  readonly tokens?: RowTokens | undefined;
  readonly settings?: RowSettings<ArrayLike<number>> | undefined;
  /** Of each row under a constraint, the tokens that may be drawn next; all where undefined. */
  readonly allowed?: AllowedTokens | undefined;
}

/**
 * Several positions of a model, of which each has the likeliest token of the one before.
 *
 * @param ids tokens at position `timeStep`, [rows]; those of the positions after it are drawn.
 * @returns the drawn tokens; to be read before the next call.
 */
export type ExtendGreedily = (
  ids: Int32Array,
  timeStep: number,
  count: number,
  uniforms?: undefined,
  rows?: RowInputs,
) => Promise<DrawnIds>;

/**
 * Several positions of a model, of which each has the token that was drawn after the one before, by the rule of the
 * decoder.
 *
 * @param uniforms the number in [0, 1] by which each token is drawn, [count, rows].
 * @returns the drawn tokens; to be read before the next call.
 */
export type ExtendSampling = (
  ids: Int32Array,
  timeStep: number,
  count: number,
  uniforms: Float32Array,
  rows?: RowInputs,
) => Promise<DrawnIds>;

/**
 * The first positions of all rows at once, as ExtendStep takes them one by one.
 *
 * @param ids tokens at positions 0 to count - 1, [rows, count]; or [prompts, count], of which each has as many consecutive
 *   rows, which then share its state.
 * @param lengths tokens of each prompt, [prompts], where they are not `count`.
 */
export type Prefill = (ids: Int32Array, count: number, lengths?: Int32Array) => Promise<void>;

/**
 * One position of each row, as ExtendStep, where rows are at positions of their own.
 *
 * @param positions of the tokens, [rows].
 */
export type ExtendRows = (ids: Int32Array, positions: Int32Array) => Promise<Float32Array>;

/** The likeliest next tokens of rows. */
export interface Candidates {
  /** Likeliest first, [rows, count], and their log-probabilities. */
  readonly ids: Int32Array;
  readonly logprobs: Float32Array;
  /** Log-probabilities of certain ids, [rows, number of them]. */
  readonly logprobsOf: Float32Array;
}

/**
 * One position of each row, as ExtendRows, of which only the likeliest tokens come back.
 *
 * @param allowed of each row.
 */
export type ExtendCandidates = (
  ids: Int32Array,
  positions: Int32Array,
  allowed?: AllowedTokens,
) => Promise<Candidates>;

/**
 * Several positions of each row, as ExtendRows: its token at `positions`, and a draft of those behind it. A later call from
 * an earlier position takes back what was behind that.
 *
 * @param ids [rows, count].
 * @param allowed after each.
 * @returns the likeliest tokens after each, and their log-probabilities, [rows, count].
 */
export type ExtendDrafts = (
  ids: Int32Array,
  positions: Int32Array,
  allowed?: AllowedTokens,
) => Promise<DrawnIds>;

/** As ExtendDrafts: the logits after each token, [rows * count * V]. */
export type ExtendDraftLogits = (ids: Int32Array, positions: Int32Array) => Promise<Float32Array>;

/**
 * Gives each row i the state of row `origins[i]`, for beams and forks.
 *
 * @param filled tokens that rows have, at most; all places are copied where it is absent.
 */
export type Reorder = (origins: ArrayLike<number>, filled?: number) => void;

/** A model in the middle of a decode: its rows, which each have a state. */
export interface DecodingModel {
  readonly extendStep: ExtendStep;
  readonly extendRows?: ExtendRows | undefined;
  /** Of a decoder with `candidates`. */
  readonly extendCandidates?: ExtendCandidates | undefined;
  /** Of a decoder with `draftTokens`. */
  readonly extendDrafts?: ExtendDrafts | undefined;
  readonly extendDraftLogits?: ExtendDraftLogits | undefined;
  /** The model that drafts, of as many rows, where there is one. */
  readonly draft?: DecodingModel | undefined;
  readonly reorder?: Reorder | undefined;
  /** Called by a greedy decoder in the place of extendStep, where there is one. */
  readonly extendGreedily?: ExtendGreedily | undefined;
  /** Called by a decoder that samples in the place of extendStep, where there is one. */
  readonly extendSampling?: ExtendSampling | undefined;
  /** Takes the positions that all prompts have, where there is one. */
  readonly prefill?: Prefill | undefined;
  /**
   * `prefill` takes a multiple of this many positions, default 1. A multiple of the model's own block makes a row's
   * tokens independent of the prompts beside it, as long as all have as many whole blocks.
   */
  readonly prefillBlock?: number | undefined;
  /**
   * Whether a decode begins with `prefill` of whole prompts up to their last tokens, and their lengths so. Steps count from the
   * last tokens then, each row at positions of its own.
   */
  readonly wholePrompts?: boolean | undefined;
}

/** Prompts to continue. */
export interface Prompts {
  /** Tokens that begin each row, [rows, P]; what lies beyond a row's length is not read. */
  readonly prefixIds: Int32Tensor;
  /** Tokens of the prompt in each row, [rows]; a row always begins with its first token, even if 0 is given. */
  readonly prefixLengths: Int32Tensor;
}
