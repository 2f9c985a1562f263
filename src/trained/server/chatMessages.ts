/** @file Messages of chat requests in OpenAI's form, as chat templates read them. */
import { z } from 'zod';
import type { ChatMessage } from '../../inputs/index.js';
import { expected } from './bodyFields.js';
import { flag, text } from './requestFields.js';

const part = z.object({ type: z.literal('text', expected('"text"')), text });
const content = z.union([z.string(), z.array(part)], expected('a text, or a list of {"type": "text"}'));

const call = z.object({
  id: text.optional(),
  type: z.literal('function').optional(),
  function: z.object({ name: text, arguments: text }),
});

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool'] as const;

export const messagesField = z
  .array(
    z.looseObject({
      role: z.enum(ROLES, expected(ROLES.map((role) => `"${role}"`).join(', '))),
      content: content.nullish(),
      tool_calls: z.array(call, expected('a list of calls')).nullish(),
    }),
    expected('a list of messages'),
  )
  .min(1, expected('a list of messages'));

export const toolsField = z
  .array(
    z.strictObject(
      {
        type: z.literal('function', expected('"function"')),
        function: z.strictObject({
          name: text,
          description: text.optional(),
          parameters: z.record(z.string(), z.unknown()).optional(),
          strict: flag.nullish(),
        }),
      },
      expected('a tool of type "function"'),
    ),
    expected('a list of tools'),
  )
  .optional();

/** Arguments as templates write them: an object, where the text is one. */
function argumentsOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** Messages for templates: contents are texts, arguments of calls objects; templates know no developers. */
export function templateMessages(messages: z.output<typeof messagesField>): ChatMessage[] {
  return messages.map(({ role, content: said, tool_calls, ...others }) => ({
    ...others,
    role: role === 'developer' ? 'system' : role,
    content: typeof said === 'string' ? said : (said ?? []).map((each) => each.text).join(''),
    ...(tool_calls && {
      tool_calls: tool_calls.map(({ function: { name, arguments: given }, ...rest }) => ({
        ...rest,
        function: { name, arguments: argumentsOf(given) },
      })),
    }),
  }));
}
