/** @file Bodies of POST /v1/chat/completions: OpenAI's fields, as far as a trained run supports them. */
import { z } from 'zod';
import type { ChatMessage } from '../../inputs/index.js';
import type { GenerateOptions } from '../generation.js';
import { checkedFields, expected, schemaOf } from './bodyFields.js';
import { messagesField, templateMessages, toolsField } from './chatMessages.js';
import { schemaField } from './constraintFields.js';
import { HttpError } from './httpError.js';
import {
  flag,
  integer,
  type Limits,
  MOST_TOP,
  type RequestSettings,
  requestFields,
  requestSettings,
  text,
} from './requestFields.js';
import { toolChoiceFields, toolConstraint } from './toolChoice.js';

/** A chat request. */
export interface ChatRequest extends RequestSettings {
  readonly messages: readonly ChatMessage[];
  /** Values for the template beside the messages: tools among them, where there are some. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Whether calls of tools are told apart from the text. */
  readonly hasTools: boolean;
}

const responseFormat = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('text') }),
    z.strictObject({ type: z.literal('json_object') }),
    z.strictObject({
      type: z.literal('json_schema'),
      json_schema: z.strictObject({
        name: text.optional(),
        description: text.optional(),
        schema: schemaField.default(true),
        strict: flag.nullish(),
      }),
    }),
  ],
  expected('an object of type "text", "json_object" or "json_schema"'),
);

/** The constraint on the answer's text, if any. It holds whether the request asks to be strict or not. */
function constraintOf(format: z.output<typeof responseFormat> | undefined): GenerateOptions['constraint'] {
  if (format?.type === 'json_object') return { json: 'object' };
  return format?.type === 'json_schema' ? { jsonSchema: format.json_schema.schema } : undefined;
}

const schemaFor = schemaOf((limits: Limits) => {
  const { model, ...others } = requestFields(limits);
  return z.object({
    model,
    messages: messagesField,
    ...others,
    max_completion_tokens: integer(1, limits.maxTokens),
    logprobs: flag.optional(),
    top_logprobs: integer(0, MOST_TOP),
    tools: toolsField,
    ...toolChoiceFields,
    response_format: responseFormat.optional(),
    modalities: z.tuple([z.literal('text')], expected('["text"], as others are not supported')).optional(),
    chat_template_kwargs: z
      .record(z.string(), z.unknown(), expected('values for the chat template by name'))
      .optional(),
  });
});

/** Checks a body. @throws HttpError 400 with the field's name */
export function readChatBody(body: unknown, limits: Limits): ChatRequest {
  const fields = checkedFields(body, schemaFor(limits), 'messages');
  const { max_completion_tokens: most, top_logprobs: top, logprobs = false, tools, tool_choice } = fields;
  if (top !== undefined && !logprobs)
    throw new HttpError(400, `top_logprobs: expected "logprobs": true beside it.`, { param: 'top_logprobs' });
  const settings = requestSettings({ ...fields, max_tokens: most ?? fields.max_tokens }, limits.maxTokens, {
    response_format: constraintOf(fields.response_format),
    tool_choice: toolConstraint(fields),
  });
  const hasTools = tools !== undefined && tool_choice !== 'none';
  return {
    ...settings,
    messages: templateMessages(fields.messages),
    variables: { ...fields.chat_template_kwargs, ...(hasTools && { tools }) },
    hasTools,
    options: { ...settings.options, ...(logprobs && { logprobs: top ?? 0 }) },
  };
}
