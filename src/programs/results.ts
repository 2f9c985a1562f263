/** @file Results of evaluations and decodes. */
import type { WeightedValues } from '../tasks/index.js';

/** What an evaluation found. */
export interface EvalResult {
  /** Weighted means over all batches. */
  readonly metrics: WeightedValues;
  readonly batches: number;
  readonly seconds: number;
  /** How the data differs from what the run read at first; told once. */
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
  readonly decode_length: number;
}

/** A decoded example, as a line of decoder_out_<step>_shard_0.jsonl has it (field names are Pax's). */
export interface DecodedExample extends Sample {
  readonly prefix: string;
  readonly prefix_length: number;
  /** The example that the prompt is the beginning of. */
  readonly original: string;
  readonly ids: readonly number[];
  /** Where the decoder draws several: all of them, the one above included. */
  readonly sampled?: readonly Sample[];
}

/** What a decode gave. */
export interface DecodeResult {
  readonly examples: readonly DecodedExample[];
  /** The file that holds them. */
  readonly path: string;
  readonly seconds: number;
  /** Tokens drawn. */
  readonly tokens: number;
  /** How the data differs from what the run read at first; told once. */
  readonly changes?: string | undefined;
}
