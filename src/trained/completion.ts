/** @file One continuation of a prompt: its settings, its tokens, its text by pieces. */
import { foldIn, type PrngKey, prngKey } from '../compiler/index.js';
import { type SamplingRule, sampleId, unitDouble } from '../decoding/index.js';
import type { TokenDecoder } from '../inputs/index.js';
import { ContinuedText } from './continuedText.js';
import type { Generation } from './generation.js';
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
  /** Hands the completion to the decoder. */
  readonly enqueue: (completion: Completion) => void;
}

/** A prompt's continuation; iterated once, it is decoded and gives its text by pieces. Leaving the loop cancels it. */
export class Completion implements AsyncIterable<string> {
  finishReason: FinishReason | undefined;
  /** Tokens drawn, an end-of-sequence token included. */
  get tokens(): number {
    return this.#ids.length - this.promptIds.length;
  }

  /** Prompt and continuation. */
  readonly #ids: number[];
  readonly #text: ContinuedText;
  readonly #key: PrngKey;
  readonly #pieces: string[] = [];
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
    this.#key = prngKey(seed);
  }

  /** The key of the draws. */
  get key(): PrngKey {
    return this.#key;
  }

  /** Draws the next token from logits, [V]: a function of the seed and the number of tokens before it alone. */
  select(logits: Float32Array): number {
    const { temperature, topK: k, topP: p } = this.settings;
    return sampleId(
      logits,
      { ...this.model.rule, temperature, k, p },
      unitDouble(foldIn(this.#key, this.tokens)),
      { ids: this.#ids, promptLength: this.promptIds.length },
    );
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
    if (this.model.endIds.has(id)) return this.#finish('stop', this.#text.rest());
    const { piece, isStopped } = this.#text.take(id);
    if (isStopped) return this.#finish('stop', piece);
    if (this.tokens === this.settings.maxTokens) return this.#finish('length', piece + this.#text.rest());
    this.#give(piece);
    return false;
  }

  /** Ends a continuation for which the model has no more room. */
  end(): void {
    if (this.finishReason === undefined) this.#finish('length', this.#text.rest());
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
