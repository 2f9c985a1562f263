/** @file RenderChat: records of messages become tokens, of which the answers alone count. */
import { z } from 'zod';
import { concatenate } from '../text/tokens.js';
import type { BaseTokenizer } from '../text/vocabularies/baseTokenizer.js';
import { type ChatPart, ChatTemplate, messagesOf } from './chatTemplate.js';
import {
  type Example,
  MapPreprocessor,
  type PreprocessContext,
  targetFeature,
  valueAt,
} from './preprocessor.js';
import { uncounted } from './sequenceRows.js';

/**
 * Renders the messages of a record by a chat template, and encodes the text: supervised fine-tuning on `answers: 'all'`, whose
 * `targets` are the whole chat, all but the answers marked as not to count (`LanguageModelFeatures` gives them weight 0); or
 * `'last'`: `targets` are the last answer and `inputs` what stands before it, as decodes and metrics want them.
 *
 * Answers are encoded apart from what stands around them, as a decode encodes its prompt. A leading `bos_token` is left out:
 * feature converters put `bosId` first.
 */
export class RenderChat extends MapPreprocessor.with({
  template: z
    .string()
    .min(1)
    .describe('The template in Jinja, as chat_template of tokenizer_config.json; see publishedChatTemplate.'),
  variables: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
    .default({})
    .describe(
      "Values that the template reads besides messages and the record's tools. bos_token and eos_token are the tokenizer's " +
        'unless given.',
    ),
  messages: z.string().default('messages').describe('Name of the messages in a record.'),
  answers: z
    .enum(['all', 'last'])
    .default('all')
    .describe('Whether all answers count within the whole chat, or the last one is a target of its own.'),
}) {
  /** By tokenizer: its special tokens are variables. */
  readonly #templates = new Map<BaseTokenizer, ChatTemplate>();

  protected override setup(): void {
    super.setup();
    // Bad syntax is found before any record is read.
    new ChatTemplate(this.hp.template);
  }

  protected override map(example: Example, context: PreprocessContext): Example {
    const { messages: name, answers } = this.hp;
    const { tokenizer } = targetFeature(context, 'that the chat becomes').hp;
    const { [name]: messages, tools, ...others } = example;
    const parts = this.#templateFor(tokenizer).parts(
      messagesOf(messages ?? valueAt(example, name), name),
      tools === undefined ? {} : { tools },
    );
    const tokens = parts.map(({ text }) => tokenizer.encode(text));
    if (tokenizer.bosId !== null && tokens[0]![0] === tokenizer.bosId) tokens[0] = tokens[0]!.subarray(1);
    return { ...others, ...(answers === 'all' ? wholeChat(parts, tokens) : lastAnswer(parts, tokens)) };
  }

  #templateFor(tokenizer: BaseTokenizer): ChatTemplate {
    const known = this.#templates.get(tokenizer);
    if (known !== undefined) return known;
    const textOf = (id: number | null): string => (id === null ? '' : tokenizer.decode([id]));
    const special = { bos_token: textOf(tokenizer.bosId), eos_token: textOf(tokenizer.eosId) };
    const template = new ChatTemplate(this.hp.template, { ...special, ...this.hp.variables });
    this.#templates.set(tokenizer, template);
    return template;
  }
}

const wholeChat = (parts: readonly ChatPart[], tokens: readonly Int32Array[]): Example => ({
  targets: concatenate(tokens.map((ids, i) => (parts[i]!.isAnswer ? ids : ids.map(uncounted)))),
});

function lastAnswer(parts: readonly ChatPart[], tokens: readonly Int32Array[]): Example {
  const last = parts.findLastIndex(({ isAnswer }) => isAnswer);
  return { inputs: concatenate([new Int32Array(0), ...tokens.slice(0, last)]), targets: tokens[last]! };
}
