/** @file Bodies of POST /tokenize and /detokenize, as vLLM's server has them. */
import { z } from 'zod';
import type { ChatMessage } from '../../inputs/index.js';
import { checkedFields, expected } from './bodyFields.js';
import { messagesField, templateMessages, toolsField } from './chatMessages.js';
import { flag, text } from './requestFields.js';

/** A request for the tokens of a prompt or a chat. */
export interface TokenizeRequest {
  readonly model: string | undefined;
  readonly prompt: string | undefined;
  readonly messages: readonly ChatMessage[];
  /** For the chat template. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Whether the tokens come with their texts. */
  readonly hasTexts: boolean;
}

const shared = { model: text.optional(), return_token_strs: flag.optional() };
const ofPrompt = z.object({ ...shared, prompt: text });
const ofChat = z.object({
  ...shared,
  messages: messagesField,
  tools: toolsField,
  add_generation_prompt: flag.optional(),
});
const ids = expected('a list of token ids');
const ofTokens = z.object({ model: text.optional(), tokens: z.array(z.int(ids).nonnegative(ids), ids) });

/** @throws HttpError 400 with the field's name */
export function readTokenizeBody(body: unknown): TokenizeRequest {
  if (typeof body === 'object' && body !== null && Object.hasOwn(body, 'messages')) {
    const fields = checkedFields(body, ofChat, 'messages');
    const { model, messages, tools, add_generation_prompt = true, return_token_strs = false } = fields;
    return {
      ...{ model, prompt: undefined, messages: templateMessages(messages), hasTexts: return_token_strs },
      variables: { add_generation_prompt, ...(tools && { tools }) },
    };
  }
  const { model, prompt, return_token_strs = false } = checkedFields(body, ofPrompt, 'prompt');
  return { model, prompt, messages: [], variables: {}, hasTexts: return_token_strs };
}

/** @throws HttpError 400 with the field's name */
export function readDetokenizeBody(body: unknown): { model: string | undefined; tokens: readonly number[] } {
  const { model, tokens } = checkedFields(body, ofTokens, 'tokens');
  return { model, tokens };
}
