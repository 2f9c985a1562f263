/** @file Base of decoders, with Pax's fields (praxis/decoder_hparams.py), and the output of a decode. */
import { z } from 'zod';
import { foldIn, type PrngKey } from '../compiler/index.js';
import { type Config, ConfigError, Configurable } from '../hparams/index.js';
import type { BaseLayer } from '../layers/index.js';
import { type Constraints, constraintField, type TokenConstraint } from './constraints/index.js';
import { type Draws, decodeRows } from './decodeLoop.js';
import type { DecodingModel, Float32Tensor, Int32Tensor, Prompts } from './decodingModel.js';
import { checkSettings, type ExampleSettings, endSequences, rowsOf } from './exampleSettings.js';
import type { LogitAdjustments } from './logitAdjustments.js';
import { checkPrompts, takeColumns, unitDouble } from './promptRows.js';
import type { RowSettings } from './sampledIds.js';
import type { SamplingRule } from './sampling.js';
import type { CandidateRule, PromptSharing } from './stepPrograms.js';

/** A decode to run; the model is called with `numRows(B)` rows. */
export interface DecodeRequest extends Prompts, DecodingModel {
  /** Key of the draws; the same key gives the same tokens. Not read by a greedy decoder. */
  readonly key: PrngKey;
  /** Of a guided decode: the prompts without a condition, as many; by default the last tokens of the prompts. */
  readonly unconditional?: Prompts | undefined;
  /** Settings of single prompts in the place of the decoder's. */
  readonly settings?: ExampleSettings | undefined;
  /** Of a decoder with a constraint: the compiler of constraints on the model's vocabulary. */
  readonly constraints?: Constraints | undefined;
}

/** Tokens that continue a prompt, up to the end of the sequence if there is one. */
export interface Continuation {
  readonly ids: readonly number[];
  /** The log-probability of each. */
  readonly logprobs: readonly number[];
}

/** A finished decode. S is numSamples; a greedy decoder has no such dimension. T is seqlen. */
export interface DecodeOutput {
  /** Tokens of each prompt, [B, S]. */
  readonly prefixLengths: Int32Tensor;
  /** The prompts, 0 beyond their lengths, [B, S, P]. */
  readonly prefixIds: Int32Tensor;
  /** Prompt and continuation, 0 beyond the end, [B, S, T]. */
  readonly outputIds: Int32Tensor;
  /** Tokens of each row, prompt and end-of-sequence token included, [B, S]. */
  readonly decodeLengths: Int32Tensor;
  /** Log-probability of each drawn token under the model, of the ids that may be drawn; 1 in the prompt and beyond the end, [B, S, T]. */
  readonly logprobs: Float32Tensor;
  /** Entropy of the model's distribution at each drawn token, in nats, where the decoder tells it, [B, S, T]. */
  readonly entropy?: Float32Tensor | undefined;
  /** The likeliest ids at each drawn token, likeliest first, where the decoder tells them, [B, S, T, N]. */
  readonly topIds?: Int32Tensor | undefined;
  /** Their log-probabilities. */
  readonly topLogprobs?: Float32Tensor | undefined;
  /** Scores by which continuations are ordered, where a decoder has such, [B, S]. */
  readonly scores?: Float32Tensor | undefined;
}

/** Fields of all decoders (praxis/decoder_hparams.py, DecoderHParams). */
export abstract class BaseDecoder extends Configurable.with({
  seqlen: z.int().default(0).describe('Length of the output, prompt included; must be set to decode.'),
  minPrefixLen: z
    .int()
    .nonnegative()
    .default(5)
    .describe('Tokens that a prompt has at least where the length of prompts is drawn.'),
  eosId: z
    .union([z.int(), z.array(z.int())])
    .default(2)
    .describe('Token or tokens that end a sequence; [] for none.'),
  maxDecodeSteps: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Tokens after the prompt, at most; null for as many as seqlen allows.'),
  minDecodeSteps: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Tokens after the prompt before which none of eosId is drawn.'),
  constraint: constraintField
    .nullable()
    .default(null)
    .describe(
      "Texts that continuations are of: { regex }, { grammar } in llama.cpp's form, { jsonSchema }, or { json: 'object' }; null for all.",
    ),
}) {
  static override readonly isAbstract = true;
  /** Rows of the model for a batch of `batchSize` prompts. */
  numRows(batchSize: number): number {
    return batchSize;
  }

  /**
   * How the rows of `batchSize` prompts of at most `longest` tokens share caches; undefined where each has one of its own.
   *
   * @throws ConfigError where the sizes of caches are not known.
   */
  sharing(_batchSize: number, _longest: number): PromptSharing | undefined {
    return undefined;
  }

  /** Whether each row's tokens are drawn from its own logits by `rule` alone. */
  get drawsByRow(): boolean {
    return this.rule !== null && this.rule.guidance === undefined;
  }

  /** The tokens that a program may give in the place of logits; undefined where the decoder reads logits. */
  get candidates(): CandidateRule | undefined {
    return undefined;
  }

  /** Tokens of the drafts of which the model takes several at once; undefined where it takes tokens one by one. */
  get draftTokens(): number | undefined {
    return undefined;
  }

  /** The model that drafts tokens, and the run or checkpoint that has its variables; undefined where none does. */
  get draft(): { readonly model: Config<BaseLayer>; readonly checkpoint: string } | undefined {
    return undefined;
  }

  /** Fields of `rule` that these settings replace for each row. */
  ruleFields(_settings: ExampleSettings): readonly (keyof RowSettings<unknown>)[] {
    return [];
  }

  /** Whether the decoder draws under a constraint, for which programs take the tokens that are allowed. */
  get isConstrained(): boolean {
    return this.hp.constraint !== null;
  }

  /**
   * The decoder's constraint on a vocabulary.
   *
   * @throws ConfigError where the request has no vocabulary, and for a constraint that cannot be compiled.
   */
  protected constraintOn({ constraints }: Pick<DecodeRequest, 'constraints'>): TokenConstraint | undefined {
    const { constraint } = this.hp;
    if (constraint === null) return undefined;
    if (constraints) return constraints.compile(constraint);
    throw new ConfigError(
      `${this.constructor.name}.constraint: expected tokens that have texts, and the model continues ids without a vocabulary.`,
    );
  }

  /** Adjustments that keep ends of sequences away from the first tokens. */
  protected get adjustments(): LogitAdjustments {
    // A constraint holds ends back itself, since it may allow nothing else.
    const minDecodeSteps = this.isConstrained ? 0 : this.hp.minDecodeSteps;
    const none = { logitBias: {}, repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0 };
    return { ...none, minDecodeSteps, eosIds: [...this.eosIds] };
  }

  /** Tokens that end a sequence. */
  get eosIds(): ReadonlySet<number> {
    const { eosId } = this.hp;
    return new Set(typeof eosId === 'number' ? [eosId] : eosId);
  }

  /** The rule by which a program may draw in the decoder's place; null where the decoder reads logits itself. */
  get rule(): SamplingRule | null {
    return null;
  }

  /**
   * Continues prompts.
   *
   * @throws ConfigError where seqlen is not set; RangeError where prompts do not fit.
   */
  abstract decode(request: DecodeRequest): Promise<DecodeOutput>;

  /**
   * Lengths of prompts cut from whole examples: uniform from minPrefixLen (or all, if there are fewer) to all tokens.
   *
   * @param lengths tokens of each example, [B].
   */
  drawPrefixLengths(lengths: Int32Tensor, key: PrngKey): Int32Tensor {
    const drawn = lengths.data.map((length, row) => {
      const least = Math.min(length, this.hp.minPrefixLen);
      return least + Math.floor(unitDouble(foldIn(key, row)) * (length - least + 1));
    });
    return { shape: lengths.shape, dtype: 'int32', data: drawn };
  }

  /**
   * Takes the prompts up to their last tokens, each once for all the rows that continue it.
   *
   * @returns the last token of each row's prompt and its position, [rows], which `extendRows` takes next.
   * @throws as `decode`.
   */
  protected async takePrompts(request: DecodeRequest): Promise<{ ids: Int32Array; positions: Int32Array }> {
    this.checkRequest(request);
    const { prefixIds, prefixLengths, prefill } = request;
    const [prompts, size] = prefixIds.shape as [number, number];
    const last = prefixLengths.data.map((length) => Math.max(1, length) - 1);
    const count = Math.max(...last);
    if (count > 0) await prefill!(takeColumns(prefixIds, count), count, last);
    const each = this.numRows(prompts) / prompts;
    const promptOf = (row: number): number => Math.trunc(row / each);
    const positions = Int32Array.from({ length: prompts * each }, (_, row) => last[promptOf(row)]!);
    return { ids: positions.map((at, row) => prefixIds.data[promptOf(row) * size + at]!), positions };
  }

  /** @throws as `decode` */
  protected checkRequest(prompts: Prompts): void {
    const { seqlen } = this.hp;
    if (seqlen <= 0) {
      throw new ConfigError(
        `${this.constructor.name}.seqlen: The sequence length for decoding must be > 0, current value = ${seqlen}.`,
      );
    }
    checkPrompts(prompts, seqlen);
  }

  /**
   * Prompts and what continues them.
   *
   * @param continuations for each prompt, best first; as many for each.
   * @returns tensors [B, S, …].
   */
  protected outputOf(prompts: Prompts, continuations: readonly (readonly Continuation[])[]): DecodeOutput {
    return outputOf(prompts, continuations, this.hp.seqlen);
  }

  /** Decodes prompts that are already repeated for every row, `each` times. */
  protected async run(
    prompts: Prompts & Pick<DecodeRequest, 'constraints'>,
    model: DecodingModel,
    draws: Draws,
    settings: ExampleSettings = {},
    each = 1,
  ): Promise<DecodeOutput> {
    const { seqlen, minDecodeSteps } = this.hp;
    this.checkRequest(prompts);
    const { prefixIds, prefixLengths } = prompts;
    const [rows, prefixSize] = [prefixLengths.data.length, prefixIds.shape[1] ?? 0];
    checkSettings(settings, rows / each);
    const most = this.hp.maxDecodeSteps ?? seqlen;
    const { perExampleMaxDecodeSteps: steps, eosId: ends } = settings;
    const stop = {
      seqlen,
      maxDecodeSteps: steps ? Int32Array.from(rowsOf(steps, each), (own) => Math.min(own, most)) : most,
      eosIds: this.eosIds,
      endSequences: ends && endSequences(ends, each),
      ...{ constraint: this.constraintOn(prompts), minDecodeSteps },
    };
    const { outputIds, decodeLengths, scores } = await decodeRows(prompts, stop, model, draws);
    const ids = prefixIds.data.map((id, i) =>
      i % prefixSize < prefixLengths.data[Math.trunc(i / prefixSize)]! ? id : 0,
    );
    const { logprobs, entropies, topIds, topLogprobs } = scores;
    const others = [rows, seqlen, (topIds?.length ?? 0) / (rows * seqlen)];
    return {
      prefixLengths,
      prefixIds: { shape: [rows, prefixSize], dtype: 'int32', data: ids },
      outputIds: { shape: [rows, seqlen], dtype: 'int32', data: outputIds },
      decodeLengths: { shape: [rows], dtype: 'int32', data: decodeLengths },
      logprobs: { shape: [rows, seqlen], dtype: 'float32', data: logprobs },
      ...(entropies && { entropy: { shape: [rows, seqlen], dtype: 'float32', data: entropies } }),
      ...(topIds && { topIds: { shape: others, dtype: 'int32', data: topIds } }),
      ...(topLogprobs && { topLogprobs: { shape: others, dtype: 'float32', data: topLogprobs } }),
    };
  }
}

function outputOf(
  { prefixIds, prefixLengths }: Prompts,
  continuations: readonly (readonly Continuation[])[],
  seqlen: number,
): DecodeOutput {
  const [prompts, size] = prefixIds.shape as [number, number];
  const samples = continuations[0]?.length ?? 0;
  const rows = prompts * samples;
  const int32 = (width: number) => new Int32Array(rows * width);
  const [lengths, starts, outputs, ends] = [int32(1), int32(size), int32(seqlen), int32(1)];
  const logprobs = new Float32Array(rows * seqlen).fill(1);
  for (const [row, { ids, logprobs: drawn }] of continuations.flat().entries()) {
    const prompt = Math.trunc(row / samples);
    const length = prefixLengths.data[prompt]!;
    const prefix = prefixIds.data.subarray(prompt * size, prompt * size + length);
    // A row begins with a token in every case.
    const begin = Math.max(1, length);
    lengths[row] = length;
    starts.set(prefix, row * size);
    outputs[row * seqlen] = prefixIds.data[prompt * size]!;
    outputs.set(prefix, row * seqlen);
    outputs.set(ids, row * seqlen + begin);
    logprobs.set(drawn, row * seqlen + begin);
    ends[row] = begin + ids.length;
  }
  const shaped = <T extends Int32Array | Float32Array>(data: T, ...shape: number[]) => ({
    shape: [prompts, samples, ...shape],
    data,
  });
  return {
    prefixLengths: { ...shaped(lengths), dtype: 'int32' },
    prefixIds: { ...shaped(starts, size), dtype: 'int32' },
    outputIds: { ...shaped(outputs, seqlen), dtype: 'int32' },
    decodeLengths: { ...shaped(ends), dtype: 'int32' },
    logprobs: { ...shaped(logprobs, seqlen), dtype: 'float32' },
  };
}
