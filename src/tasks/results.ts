/** @file Results of evaluations and decodes. */
import type { InputState, Skipped } from '../inputs/index.js';
import type { SummaryValue, Throughput } from '../summaries/index.js';
import type { EvaluatedExample } from './evaluation.js';
import type { MetricTable, WeightedValues } from './metrics.js';

/** Result of an evaluation. */
export interface EvalResult {
  /** Weighted means over all batches, and the task's `evalMetrics`. */
  readonly metrics: WeightedValues;
  /** Those of the `evalMetrics` that are tables. */
  readonly tables: Readonly<Record<string, MetricTable>>;
  /** Summaries of layers in the first batch that are no scalars, by name, and metrics that are pictures. */
  readonly media: Readonly<Record<string, SummaryValue>>;
  /** Those of the `exampleOutputs` that the task's `evaluate` names, in the order of the data. */
  readonly evaluatedExamples: readonly EvaluatedExample[];
  readonly batches: number;
  /** Position after the last batch, where data goes on from one evaluation to the next (`resetForEval` false); else null. */
  readonly end: InputState | null;
  /** Broken examples left out. */
  readonly skipped: Skipped;
  /** Without compilation. */
  readonly seconds: number;
  readonly throughput: Throughput;
  /** Differences of the data from its record, reported once. */
  readonly changes?: string | undefined;
}

/** One continuation. */
export interface Sample {
  /** Prompt and continuation. */
  readonly decoded: string;
  /** The continuation alone. */
  readonly decoded_substr: string;
  readonly decoded_ids: readonly number[];
  /** Log-probability of each token of the continuation. */
  readonly logprobs: readonly number[];
  /** Where the decoder tells it: entropy of the distribution at each, in nats. */
  readonly entropy?: readonly number[];
  /** Where the decoder tells them: the likeliest ids at each, likeliest first, and their log-probabilities. */
  readonly top_ids?: readonly (readonly number[])[];
  readonly top_logprobs?: readonly (readonly number[])[];
  /** Of beam search: the score by which continuations are ordered. */
  readonly score?: number;
  readonly decode_length: number;
}

/** A decoded example, as a line of decoder_out_<step>_shard_0.jsonl (field names are Pax's). */
export interface DecodedExample extends Sample {
  /** The text that an encoder-decoder read. */
  readonly source?: string;
  readonly prefix: string;
  readonly prefix_length: number;
  /** The whole example, starting with the prompt. */
  readonly original: string;
  readonly ids: readonly number[];
  /** Number of the example in the data, where it has one. */
  readonly example_id?: number;
  /** Pairs that predict metrics compare: the target and the continuation, postprocessed. */
  readonly seqio_targets?: unknown;
  readonly seqio_postprocessed_predictions?: unknown;
  /** All continuations if the decoder draws several, including the one above. */
  readonly sampled?: readonly Sample[];
}

/** Result of an inference whose outputs were written. */
export interface InferResult {
  /** None. */
  readonly metrics: WeightedValues;
  readonly numExamples: number;
  /** Folder of the outputs. */
  readonly path: string;
  readonly seconds: number;
  readonly throughput: Throughput;
  /** Broken examples left out. */
  readonly skipped: Skipped;
  /** Differences of the data from its record, reported once. */
  readonly changes?: string | undefined;
}

/** Result of a decode. */
export interface DecodeResult {
  /** The predict metrics of the data's tasks. */
  readonly metrics: WeightedValues;
  readonly examples: readonly DecodedExample[];
  /** File with the examples, where they were written. */
  readonly path?: string | undefined;
  readonly seconds: number;
  /** Broken examples left out. */
  readonly skipped: Skipped;
  /** Tokens drawn per second. */
  readonly throughput: Throughput;
  /** Differences of the data from its record, reported once. */
  readonly changes?: string | undefined;
}
