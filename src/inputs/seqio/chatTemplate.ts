/** @file Chat templates in Jinja, as models of Hugging Face's hub have them: text of a chat, with its answers told apart. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Template } from '@huggingface/jinja';
import { z } from 'zod';
import { explain, readJsonFile, readRegularFile } from '../../files/index.js';
import { ConfigError } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import { shown } from '../shown.js';

const require = createRequire(import.meta.url);
/** Loaded for the first template, as most runs have none. */
const jinja = (): typeof import('@huggingface/jinja') => require('@huggingface/jinja');

/** A message of a chat; templates may read more of it than role and content, such as calls of tools. */
export interface ChatMessage {
  /** Its author: `system`, `user`, `assistant`, `tool`, … */
  readonly role: string;
  readonly [field: string]: unknown;
}

/** A piece of a rendered chat. */
export interface ChatPart {
  readonly text: string;
  /** Whether a model is to write it. */
  readonly isAnswer: boolean;
}

/** Author of the answers. */
const ASSISTANT = 'assistant';

/** Stand around answers in rendered text: noncharacters, which Unicode keeps out of texts. */
const [BEGIN, END] = ['\uFDD0', '\uFDD1'];

/** `{% generation %}` and its end, with the signs that strip white space around them. */
const GENERATION = /\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}/g;

/**
 * A chat template. Answers are the text between `{% generation %}` and `{% endgeneration %}`, as in transformers; without
 * these tags, the text that each message of the assistant adds to the chat before it, rendered with `add_generation_prompt`.
 */
export class ChatTemplate {
  readonly #template: Template;
  readonly #isMarked: boolean;

  /** @param variables values that the template reads besides messages: `bos_token`, … @throws ConfigError for bad syntax */
  constructor(
    text: string,
    private readonly variables: Readonly<Record<string, unknown>> = {},
  ) {
    // Blocks, since white space around them is stripped as around the tags.
    const marked = text.replace(GENERATION, (_, before, end, after) => {
      const mark = end === undefined ? BEGIN : END;
      return `{%${before} if true %}${mark}{% endif ${after}%}`;
    });
    this.#isMarked = marked !== text;
    try {
      this.#template = new (jinja().Template)(marked);
    } catch (cause) {
      throw new ConfigError(`The chat template is not valid Jinja: ${(cause as Error).message}.`, { cause });
    }
  }

  /**
   * A chat in pieces, whose texts make up the whole.
   *
   * @param variables values of this chat beside those of all chats, such as `tools`.
   * @throws InputError where the template fails, or there is no answer; and for messages before an answer, or up to its end, that
   *   are rendered otherwise than within the whole chat.
   */
  parts(messages: readonly ChatMessage[], variables: Readonly<Record<string, unknown>> = {}): ChatPart[] {
    const render = (count: number, asksForAnswer = false): string =>
      this.#render(messages.slice(0, count), { ...variables, add_generation_prompt: asksForAnswer });
    const whole = render(messages.length);
    const parts = this.#isMarked ? markedParts(whole) : addedParts(messages, whole, render);
    if (parts.some(({ isAnswer }) => isAnswer)) return parts;
    const roles = [...new Set(messages.map(({ role }) => role))].join(', ');
    throw new InputError(
      this.#isMarked
        ? 'the chat template puts nothing between {% generation %} and {% endgeneration %}, so there is nothing to learn.'
        : `the chat has no message of role '${ASSISTANT}', so there is nothing to learn. It has the roles: ${roles}.`,
    );
  }

  #render(messages: readonly ChatMessage[], variables: Readonly<Record<string, unknown>>): string {
    try {
      return this.#template.render({ ...this.variables, ...variables, messages });
    } catch (cause) {
      throw new InputError(
        `the chat template fails for ${messages.length} messages: ${(cause as Error).message}. ` +
          `Valid are the messages, tools and variables that it asks for; variables: ` +
          `${Object.keys(this.variables).join(', ') || 'none'}.`,
        { cause },
      );
    }
  }
}

function markedParts(text: string): ChatPart[] {
  const parts: ChatPart[] = [];
  for (const [i, piece] of text.split(BEGIN).entries()) {
    const [answer, ...rest] = i === 0 ? ['', piece] : piece.split(END);
    if (rest.length !== 1)
      throw new InputError(
        'the chat template opens {% generation %} without closing it before the next one, or a message has U+FDD0 or U+FDD1.',
      );
    parts.push({ text: answer!, isAnswer: true }, { text: rest[0]!, isAnswer: false });
  }
  return parts.filter(({ text }) => text !== '');
}

function addedParts(
  messages: readonly ChatMessage[],
  whole: string,
  render: (count: number, asksForAnswer?: boolean) => string,
): ChatPart[] {
  const parts: ChatPart[] = [];
  let taken = 0;
  const take = (until: number, isAnswer: boolean): void => {
    if (until > taken) parts.push({ text: whole.slice(taken, until), isAnswer });
    taken = Math.max(taken, until);
  };
  for (const [i, { role }] of messages.entries()) {
    if (role !== ASSISTANT) continue;
    const [before, upTo] = [render(i, true), render(i + 1)];
    if (!upTo.startsWith(before) || !whole.startsWith(upTo))
      throw new InputError(
        `the chat template renders what stands before message ${i} otherwise once the message is there, so that its answer ` +
          'cannot be told apart. Put {% generation %} and {% endgeneration %} around answers in the template.',
      );
    take(before.length, false);
    take(upTo.length, true);
  }
  take(whole.length, false);
  return parts;
}

/** The messages of an example. @throws InputError for another value */
export function messagesOf(value: unknown, name: string): readonly ChatMessage[] {
  const isMessage = (each: unknown): boolean => typeof (each as ChatMessage | null)?.role === 'string';
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) return value;
  const bad = Array.isArray(value) && value.length > 0 ? value.find((each) => !isMessage(each)) : value;
  throw new InputError(
    `'${name}': expected a list of messages, each with role and content, as { "role": "user", "content": "Hi" }; got ` +
      `${shown(bad)}.`,
  );
}

/** A template without the tags around answers, which other readers of Jinja do not know. */
export const withoutGenerationTags = (text: string): string =>
  text.replace(
    GENERATION,
    (_, before, end, after) => `{%${before} ${end === undefined ? 'if true' : 'endif'} ${after}%}`,
  );

const templatesSchema = z.looseObject({
  chat_template: z
    .union([z.string(), z.array(z.object({ name: z.string(), template: z.string() }))])
    .nullish(),
});

/** The template of a published model's folder; undefined where it has none. @throws ConfigError for a file that can't be read */
export function findChatTemplate(folder: string): string | undefined {
  const [own, config] = [join(folder, 'chat_template.jinja'), join(folder, 'tokenizer_config.json')];
  if (existsSync(own)) return placed(own, () => readRegularFile(own).toString('utf8'));
  if (!existsSync(config)) return undefined;
  const { chat_template: found } = placed(config, () => readJsonFile(config, templatesSchema));
  if (!Array.isArray(found)) return found ?? undefined;
  return (found.find(({ name }) => name === 'default') ?? found[0])?.template;
}

function placed<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new ConfigError(`${path}: no chat template can be read from it (${explain(cause)}).`, { cause });
  }
}

/** The template of a published model's folder. @throws ConfigError where it has none */
export function publishedChatTemplate(folder: string): string {
  const found = findChatTemplate(folder);
  if (found !== undefined) return found;
  throw new ConfigError(
    `${folder} has no chat template: neither chat_template.jinja, nor a chat_template in tokenizer_config.json.`,
  );
}
