/** @file ChatRenderer: a chat template in a process whose time and memory are bounded. */
import { type ChatMessage, withoutGenerationTags } from '../../inputs/index.js';
import { Answerer, Child, Turns } from '../../system/index.js';
import { RequestError } from '../requestError.js';

/** A template, and where it is from. */
export interface ChatTemplateText {
  readonly text: string;
  /** As errors name it. */
  readonly origin: string;
  /** Values that it reads besides those of a chat: `bos_token`, … */
  readonly variables: Readonly<Record<string, unknown>>;
}

/** To the process. Variables of null ask whether the template can be parsed. */
export interface RenderQuestion {
  readonly template: string;
  readonly variables: Readonly<Record<string, unknown>> | null;
}

/** From the process. */
export type RenderAnswer = { readonly text: string } | { readonly error: string };

/** MiB that the process may use. */
const MOST_MEMORY = 128;
/** Seconds until an answer, the start of the process included, on a machine that is busy. */
const MOST_SECONDS = 30;

const begin = async (): Promise<Child<RenderQuestion, RenderAnswer>> =>
  new Child(new URL('./chatProcess.cjs', import.meta.url), {
    flags: [`--max-old-space-size=${MOST_MEMORY}`],
  });

/** Renders chats by a template. The process starts with the first chat, and again where it has ended. */
export class ChatRenderer {
  readonly #turns = new Turns();
  readonly #process = new Answerer<RenderQuestion, RenderAnswer>(begin, () => true);

  #template: ChatTemplateText | undefined;

  /** @param find the template, once it is asked for: most runs never render a chat */
  constructor(private readonly find: () => ChatTemplateText) {}

  /** @throws ConfigError for a file that can't be read */
  get template(): ChatTemplateText {
    this.#template ??= this.find();
    return this.#template;
  }

  /** @throws RequestError for a template that is no Jinja */
  async check(): Promise<void> {
    await this.#ask(null, 'is not valid Jinja');
  }

  /**
   * The text of a chat up to where the model's answer begins.
   *
   * @param variables values of this chat beside those of all chats, such as `tools`.
   * @throws RequestError where the template fails, or takes too much time or memory
   */
  render(
    messages: readonly ChatMessage[],
    variables: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const given = { ...this.template.variables, add_generation_prompt: true, ...variables, messages };
    return this.#ask(given, 'fails');
  }

  async #ask(variables: RenderQuestion['variables'], problem: string): Promise<string> {
    const { text, origin } = this.template;
    const question = { template: withoutGenerationTags(text), variables };
    const { messages, error } = await this.#turns.take(() => this.#process.ask(question, MOST_SECONDS));
    const [answer = { error: `it takes more than ${MOST_MEMORY} MiB, or ${MOST_SECONDS} s` }] =
      error === undefined ? messages : [];
    if ('text' in answer) return answer.text;
    throw new RequestError(`The chat template of ${origin} ${problem}: ${answer.error}.`);
  }

  /** Ends the process. */
  close(): Promise<void> {
    return this.#process.end();
  }
}
