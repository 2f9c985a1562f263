/** @file Answers to POST /v1/chat/completions: messages of the assistant, with calls of tools. */
import type { FinishReason, ScoredId, TokenScore } from '../completion.js';
import type { AnswerForm, ChoiceForm } from './answers.js';
import { finite, type TokenText } from './tokenTexts.js';
import { type ToolCall, ToolCallReader } from './toolCalls.js';

/** What the form takes of a request and its model. */
export interface ChatFormOptions {
  readonly hasLogprobs: boolean;
  /** Whether calls of tools are told apart from the text. */
  readonly hasTools: boolean;
  readonly tokenText: (id: number) => TokenText;
}

class ChatChoice implements ChoiceForm {
  readonly #reader: ToolCallReader | undefined;
  #calls = 0;

  constructor(
    private readonly index: number,
    private readonly options: ChatFormOptions,
  ) {
    this.#reader = options.hasTools ? new ToolCallReader() : undefined;
  }

  begin(): object[] {
    return [this.#delta({ role: 'assistant', content: '' })];
  }

  piece(text: string, scores: readonly TokenScore[]): object[] {
    return this.#deltas(this.#reader?.take(text) ?? [text], scores);
  }

  end(reason: FinishReason, scores: readonly TokenScore[]): object[] {
    const last = this.#deltas(this.#reader?.rest() ?? [], scores);
    return [...last, this.#delta({}, [], this.#reasonOf(reason))];
  }

  whole(text: string, scores: readonly TokenScore[], reason: FinishReason): object {
    const parts = this.#reader ? [...this.#reader.take(text), ...this.#reader.rest()] : [text];
    const calls = parts.filter((part): part is ToolCall => typeof part !== 'string');
    const content = parts.filter((part) => typeof part === 'string').join('');
    this.#calls = calls.length;
    return {
      index: this.index,
      message: {
        ...{ role: 'assistant', content: content === '' && calls.length > 0 ? null : content, refusal: null },
        ...(calls.length > 0 && { tool_calls: calls }),
      },
      logprobs: this.#logprobs(scores),
      finish_reason: this.#reasonOf(reason),
    };
  }

  /** A model that calls tools has stopped for their results. */
  #reasonOf(reason: FinishReason): string {
    return reason === 'stop' && this.#calls > 0 ? 'tool_calls' : reason;
  }

  /** Scores come with the first part, or by themselves where it waits. */
  #deltas(parts: readonly (string | ToolCall)[], scores: readonly TokenScore[]): object[] {
    const all = parts.map((part) =>
      typeof part === 'string' ? { content: part } : { tool_calls: [{ index: this.#calls++, ...part }] },
    );
    if (all.length === 0 && scores.length > 0) return [this.#delta({}, scores)];
    return all.map((delta, i) => this.#delta(delta, i === 0 ? scores : []));
  }

  #delta(delta: object, scores: readonly TokenScore[] = [], reason: string | null = null): object {
    const logprobs = scores.length > 0 ? this.#logprobs(scores) : null;
    return { index: this.index, delta, logprobs, finish_reason: reason };
  }

  #logprobs(scores: readonly TokenScore[]): object | null {
    if (!this.options.hasLogprobs) return null;
    const content = scores.map(({ top, ...own }) => ({
      ...this.#scored(own),
      top_logprobs: top.map((each) => this.#scored(each)),
    }));
    return { content, refusal: null };
  }

  #scored({ id, logprob }: ScoredId): object {
    return { ...this.options.tokenText(id), logprob: finite(logprob) };
  }
}

/** The form of chats. */
export const chatForm = (options: ChatFormOptions): AnswerForm => ({
  ...{ prefix: 'chatcmpl', object: 'chat.completion', chunk: 'chat.completion.chunk' },
  choice: (index) => new ChatChoice(index, options),
});
