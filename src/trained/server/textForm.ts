/** @file Answers to POST /v1/completions: texts, behind their prompts where these are echoed. */
import type { Completion, ScoredId, TokenScore } from '../completion.js';
import type { AnswerForm, ChoiceForm } from './answers.js';
import { finite, type TokenText } from './tokenTexts.js';

/** What the form takes of a request and its model. */
export interface TextFormOptions {
  readonly completions: readonly Completion[];
  /** Texts of the prompts of all completions, where answers begin with them. */
  readonly echoed: readonly string[] | undefined;
  readonly hasLogprobs: boolean;
  readonly tokenText: (id: number) => TokenText;
  /** Texts that the tokens of a prompt add, one after the other. */
  readonly piecesOf: (ids: Int32Array) => readonly string[];
}

/** A token of an answer; the first of a prompt has no score. */
interface Placed {
  readonly id: number;
  readonly offset: number;
  readonly score: TokenScore | undefined;
}

class TextChoice implements ChoiceForm {
  /** The prompt, until it is written. */
  #echo: string | undefined;

  constructor(
    private readonly index: number,
    private readonly options: TextFormOptions,
  ) {
    this.#echo = options.echoed?.[index];
  }

  begin(): object[] {
    return [];
  }

  piece(text: string, scores: readonly TokenScore[]): object[] {
    return [this.#choice(text, scores, null)];
  }

  end(reason: string, scores: readonly TokenScore[]): object[] {
    return [this.#choice('', scores, reason)];
  }

  whole(text: string, scores: readonly TokenScore[], reason: string): object {
    return this.#choice(text, scores, reason);
  }

  #choice(text: string, scores: readonly TokenScore[], reason: string | null): object {
    const { echoed, hasLogprobs } = this.options;
    const before = echoed?.[this.index]?.length ?? 0;
    const drawn = scores.map((score) => ({ id: score.id, offset: before + score.offset, score }));
    const echo = this.#echo;
    this.#echo = undefined;
    const tokens = echo !== undefined && hasLogprobs ? [...this.#promptTokens(echo), ...drawn] : drawn;
    return {
      ...{ index: this.index, text: (echo ?? '') + text },
      logprobs: hasLogprobs ? this.#logprobs(tokens) : null,
      finish_reason: reason,
    };
  }

  /** The tokens of the prompt. Text of those that stand before prompts is no part of it. */
  #promptTokens(echo: string): Placed[] {
    const { promptIds, promptScores } = this.options.completions[this.index]!;
    const pieces = this.options.piecesOf(promptIds);
    let offset = Math.min(0, echo.length - pieces.join('').length);
    return Array.from(promptIds, (id, i) => {
      const placed = { id, offset: Math.max(0, offset), score: promptScores[i - 1] };
      offset += pieces[i]!.length;
      return placed;
    });
  }

  #logprobs(tokens: readonly Placed[]): object {
    const { tokenText } = this.options;
    const byText = (top: readonly ScoredId[]) =>
      // Of two tokens with one text the likelier counts.
      Object.fromEntries(top.map(({ id, logprob }) => [tokenText(id).token, finite(logprob)]).reverse());
    return {
      tokens: tokens.map(({ id }) => tokenText(id).token),
      token_logprobs: tokens.map(({ score }) => (score ? finite(score.logprob) : null)),
      top_logprobs: tokens.map(({ score }) => (score ? byText(score.top) : null)),
      text_offset: tokens.map(({ offset }) => offset),
    };
  }
}

/** The form of completions. */
export const textForm = (options: TextFormOptions): AnswerForm => ({
  ...{ prefix: 'cmpl', object: 'text_completion', chunk: 'text_completion' },
  choice: (index) => new TextChoice(index, options),
});
