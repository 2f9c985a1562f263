/** @file RenderChat: records of messages become tokens, of which the answers alone count. */
import { z } from 'zod';
import { InputError } from '../inputErrors.js';
import { concatenate } from '../text/tokens.js';
import type { BaseTokenizer } from '../text/vocabularies/baseTokenizer.js';
import { type ChatMessage, ChatTemplate, messagesOf } from './chatTemplate.js';
import { type Example, featureOf, MapPreprocessor, type PreprocessContext, valueAt } from './preprocessor.js';
import { uncounted } from './sequenceRows.js';

/** Feature that answers are encoded for. */
const ANSWER = { all: 'targets', last: 'targets', pair: 'chosen' } as const;

/** A piece of a chat as tokens. */
interface EncodedPart {
  ids: Int32Array;
  readonly isAnswer: boolean;
}

/**
 * Renders the messages of a record by a chat template, and encodes the text: supervised fine-tuning on `answers: 'all'`, whose
 * `targets` are the whole chat, all but the answers marked as not to count (`LanguageModelFeatures` gives them weight 0); or
 * `'last'`: `targets` are the last answer and `inputs` the chat before it, as decodes and metrics want them; or `'pair'`: so
 * are `chosen` and `rejected` of records that have two such lists of messages, each behind `messages` where there are any.
 *
 * Answers are encoded apart from the text around them, as a decode encodes its prompt. A leading `bos_token` is left out:
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
    .enum(['all', 'last', 'pair'])
    .default('all')
    .describe(
      'Whether all answers count within the whole chat; the last one is a target of its own; or the last ones of two chats are.',
    ),
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
    const { [name]: messages, tools, ...others } = example;
    const { tokenizer } = featureOf(context, ANSWER[answers], 'that answers become').hp;
    const render = (chat: readonly ChatMessage[]): EncodedPart[] => {
      const parts = this.#templateFor(tokenizer).parts(chat, tools === undefined ? {} : { tools });
      const encoded = parts.map(({ text, isAnswer }) => ({ ids: tokenizer.encode(text), isAnswer }));
      const [first] = encoded;
      if (tokenizer.bosId !== null && first!.ids[0] === tokenizer.bosId) first!.ids = first!.ids.subarray(1);
      return encoded;
    };
    if (answers === 'pair') {
      const before = messages === undefined ? [] : messagesOf(messages, name);
      const half = (key: string) =>
        lastAnswer(render([...before, ...messagesOf(valueAt(example, key), key)]));
      return { ...others, ...pairOf(half('chosen'), half('rejected')) };
    }
    const parts = render(messagesOf(messages ?? valueAt(example, name), name));
    return { ...others, ...(answers === 'all' ? wholeChat(parts) : lastAnswer(parts)) };
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

const wholeChat = (parts: readonly EncodedPart[]) => ({
  targets: concatenate(parts.map(({ ids, isAnswer }) => (isAnswer ? ids : ids.map(uncounted)))),
});

function lastAnswer(parts: readonly EncodedPart[]) {
  const last = parts.findLastIndex(({ isAnswer }) => isAnswer);
  const before = parts.slice(0, last).map(({ ids }) => ids);
  return { inputs: concatenate([new Int32Array(0), ...before]), targets: parts[last]!.ids };
}

/** @throws InputError for answers to different chats */
function pairOf(chosen: ReturnType<typeof lastAnswer>, rejected: ReturnType<typeof lastAnswer>) {
  const at = chosen.inputs.findIndex((id, i) => id !== rejected.inputs[i]);
  if (at < 0 && chosen.inputs.length === rejected.inputs.length)
    return { inputs: chosen.inputs, chosen: chosen.targets, rejected: rejected.targets };
  throw new InputError(
    `the chosen and the rejected answer belong to different chats: from token ${at < 0 ? chosen.inputs.length : at} on, the ` +
      'messages before them differ. Both end with the answer, behind the same messages.',
  );
}
