/** @file One continuation of a prompt: its settings, its tokens, its text by pieces. */
import { foldIn, type PrngKey, prngKey } from '../compiler/index.js';
import {
  type ConstrainedText,
  logProbability,
  type SamplingRule,
  sampleId,
  type TokenConstraint,
  topK,
  unitDouble,
} from '../decoding/index.js';
import { ConfigError } from '../hparams/index.js';
import type { TokenDecoder } from '../inputs/index.js';
import { ContinuedText } from './continuedText.js';
import { type Generation, ruleOf } from './generation.js';
import { RequestError } from './requestError.js';
import type { Source } from './sourceTexts.js';

/** Why a continuation ended: a stop text or end-of-sequence token, its length, or that it was cancelled. */
export type FinishReason = 'stop' | 'length' | 'cancelled';

/** A completion's view of its model. */
export interface CompletionModel {
  readonly decoder: TokenDecoder;
  /** The rule of the task's decoder, which the settings complete. */
  readonly rule: SamplingRule;
  /** Tokens that end a sequence, and have no text. */
  readonly endIds: ReadonlySet<number>;
  /** Of the continuation. */
  readonly constraint?: TokenConstraint | undefined;
  /** Tokens before which no end is drawn under a constraint, where others may come; default 0. */
  readonly minTokens?: number;
  /** Hands the completion to the decoder. */
  readonly enqueue: (completion: Completion) => void;
}

/** A token and its log-probability under the model, before temperature, penalties and thresholds. */
export interface ScoredId {
  readonly id: number;
  readonly logprob: number;
}

/** The score of a token in its place. */
export interface TokenScore extends ScoredId {
  /** Likeliest tokens there, `logprobs` of the settings, likeliest first. */
  readonly top: readonly ScoredId[];
  /** Characters of the continuation before it; of a prompt's tokens, -1. */
  readonly offset: number;
}

/** A prompt's continuation; iterated once, it is decoded and gives its text by pieces. Leaving the loop cancels it. */
export class Completion implements AsyncIterable<string> {
  finishReason: FinishReason | undefined;
  /** Is called for each drawn token. */
  onToken: (() => void) | undefined;
  /** Scores of the prompt's tokens from the second on, once the first token is drawn, where the settings ask for them. */
  readonly promptScores: TokenScore[] = [];
  /** Tokens drawn, an end-of-sequence token included. */
  get tokens(): number {
    return this.#ids.length - this.promptIds.length;
  }

  /** Prompt and continuation. */
  readonly #ids: number[];
  readonly #text: ContinuedText;
  /** The continuation under a constraint. */
  #constrained: ConstrainedText | undefined;
  readonly #key: PrngKey;
  readonly #rule: SamplingRule;
  readonly #pieces: string[] = [];
  /** Characters of all pieces. */
  #given = 0;
  /** Of tokens whose scores were not taken. */
  #scores: TokenScore[] = [];
  #score: TokenScore | undefined;
  #isBegun = false;
  #error: unknown;
  #wake: () => void = () => {};
  #tellEnd: () => void = () => {};
  /** Resolves once no further token is drawn, whatever has ended it. */
  readonly ended = new Promise<void>((resolve) => {
    this.#tellEnd = resolve;
  });

  constructor(
    /** Token ids of the prompt. */
    readonly promptIds: Int32Array,
    private readonly settings: Generation['hp'],
    private readonly model: CompletionModel,
    /** Of an encoder-decoder: the source. */
    readonly source?: Promise<Source>,
  ) {
    const { stop, seed } = settings;
    this.#ids = [...promptIds];
    this.#text = new ContinuedText(model.decoder, typeof stop === 'string' ? [stop] : stop);
    this.#constrained = model.constraint?.begin();
    this.#key = prngKey(seed);
    this.#rule = ruleOf(model.rule, settings);
  }

  /** The key of the draws. */
  get key(): PrngKey {
    return this.#key;
  }

  /** Tokens of the prompt and the longest continuation that the settings allow. */
  get mostTokens(): number {
    return this.promptIds.length + (this.settings.maxTokens ?? Number.POSITIVE_INFINITY);
  }

  /** Tokens of the prompt that are computed at once, before the first step; those behind them are steps. */
  get filled(): number {
    return this.settings.scoresPrompt ? 1 : this.promptIds.length;
  }

  /** Finds the tokens that a constraint allows next, which `select` then knows: to be called while logits are computed. */
  prepare(): void {
    try {
      this.#constrained?.allowed();
    } catch {
      // `select` throws it.
    }
  }

  /**
   * Draws the next token from logits, [V]: a function of the seed and the tokens before it alone.
   *
   * @throws RequestError where a constraint allows no token, or takes too long
   */
  select(logits: Float32Array): number {
    const uniform = unitDouble(foldIn(this.#key, this.tokens));
    const { minTokens = 0 } = this.model;
    const allowed = ofRequest(() => this.#constrained?.allowed(this.tokens >= minTokens));
    const given = { ids: this.#ids, promptLength: this.promptIds.length };
    const id = sampleId(logits, this.#rule, uniform, given, allowed);
    if (this.settings.logprobs !== null) this.#score = this.#scored(logits, id, this.#text.length);
    return id;
  }

  /** Takes the logits before the prompt's token at a position. @returns the token */
  scorePrompt(position: number, logits: Float32Array): number {
    const id = this.promptIds[position]!;
    this.promptScores.push(this.#scored(logits, id, -1));
    return id;
  }

  #scored(logits: Float32Array, id: number, offset: number): TokenScore {
    const likely = topK(logits, Math.max(1, this.settings.logprobs ?? 0));
    const [best] = likely as unknown as [number];
    const most = logProbability(logits, best);
    const scored = (other: number): ScoredId => ({
      ...{ id: other, logprob: most + (logits[other]! - logits[best]!) },
    });
    const top = Array.from(likely.subarray(0, this.settings.logprobs ?? 0), scored);
    return { ...scored(id), offset, top };
  }

  /** Takes a drawn token; one that has no text ends the continuation with an error. @returns whether it is the last */
  accept(id: number): boolean {
    if (this.finishReason !== undefined) return true;
    try {
      return this.#take(id);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  #take(id: number): boolean {
    this.#ids.push(id);
    this.onToken?.();
    // As in OpenAI's answers, the end has no score.
    if (this.model.endIds.has(id)) return this.#finish('stop', this.#text.rest());
    if (this.#score) this.#scores.push(this.#score);
    this.#constrained = ofRequest(() => this.#constrained?.with(id));
    const { piece, isStopped } = this.#text.take(id);
    if (isStopped) {
      const end = this.#given + piece.length;
      this.#scores = this.#scores.filter(({ offset }) => offset < end);
      return this.#finish('stop', piece);
    }
    if (this.#constrained?.isOver) return this.#finish('stop', piece + this.#text.rest());
    if (this.tokens === this.settings.maxTokens) return this.#finish('length', piece + this.#text.rest());
    this.#give(piece);
    return false;
  }

  /**
   * Scores of the tokens of the text that has been given, which were not taken before; none unless the settings ask for them.
   * Tokens behind a stop text have none.
   */
  takeScores(): TokenScore[] {
    const isWhole = this.finishReason !== undefined;
    const waiting = this.#scores.findIndex(({ offset }) => !isWhole && offset >= this.#given);
    return this.#scores.splice(0, waiting < 0 ? this.#scores.length : waiting);
  }

  /** Ends a continuation for which the model has no more room. */
  end(): void {
    if (this.finishReason === undefined) this.#finish('length', this.#text.rest());
  }

  /** Ends the continuation with the reason of an abort: its row is free at the next step. */
  endedBy(signal: AbortSignal | undefined): this {
    const abort = (): void => this.fail(signal!.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
    void this.ended.then(() => signal?.removeEventListener('abort', abort));
    return this;
  }

  /** Ends a continuation without a reader. */
  cancel(): void {
    if (this.finishReason === undefined) this.#finish('cancelled', '');
  }

  /** Ends the continuation with an error for its reader. One that has ended already is whole. */
  fail(error: unknown): void {
    if (this.finishReason === undefined) this.#error = error;
    this.cancel();
  }

  /** @throws RequestError where it was iterated before */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    if (this.#isBegun) throw new RequestError('A continuation is decoded once: ask for another.');
    this.#isBegun = true;
    this.model.enqueue(this);
    try {
      while (this.finishReason === undefined || this.#pieces.length > 0) {
        if (this.#pieces.length > 0) yield this.#pieces.splice(0).join('');
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
      if (this.#error !== undefined) throw this.#error;
    } finally {
      this.cancel();
    }
  }

  #give(piece: string): void {
    if (piece === '') return;
    this.#given += piece.length;
    this.#pieces.push(piece);
    this.#wake();
  }

  #finish(reason: FinishReason, piece: string): true {
    this.#give(piece);
    this.finishReason = reason;
    this.#wake();
    this.#tellEnd();
    return true;
  }
}

/** The result of `make`, of which errors of configs are those of the request's constraint. @throws RequestError for them */
export function ofRequest<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof ConfigError)
      throw new RequestError(error.message, { cause: error, setting: 'constraint' });
    throw error;
  }
}
