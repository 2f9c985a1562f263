/** @file The choice of tools in chat requests: which calls an answer may have, or must. */
import { z } from 'zod';
import type { GenerateOptions } from '../generation.js';
import { expected } from './bodyFields.js';
import type { toolsField } from './chatMessages.js';
import { HttpError } from './httpError.js';
import { flag, text } from './requestFields.js';
import { callTag } from './toolCalls.js';

const named = z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: text }) });

export const toolChoiceFields = {
  tool_choice: z
    .union(
      [z.enum(['auto', 'none', 'required']), named],
      expected('"auto", "none", "required", or {"type": "function", "function": {"name": "…"}}'),
    )
    .optional(),
  parallel_tool_calls: flag.optional(),
};

interface Choice {
  readonly tools?: z.output<typeof toolsField>;
  readonly tool_choice?: z.output<typeof toolChoiceFields.tool_choice>;
  readonly parallel_tool_calls?: boolean | undefined;
}

/**
 * The constraint by which an answer is one call of a named function, or of any tools as many as there may be: as JSON of their
 * parameters' schemas, whether these ask to be strict or not.
 *
 * @throws HttpError 400 for a choice of tools that are not there, and a single call that nothing holds the answer to
 */
export function toolConstraint({
  tools = [],
  tool_choice,
  parallel_tool_calls,
}: Choice): GenerateOptions['constraint'] {
  const isForced = tool_choice === 'required' || typeof tool_choice === 'object';
  if (!isForced) {
    if (parallel_tool_calls !== false || tools.length === 0 || tool_choice === 'none') return undefined;
    const message = 'parallel_tool_calls: expected true where calls are not "required", got false.';
    throw new HttpError(400, message, { param: 'parallel_tool_calls' });
  }
  const refused = (what: string): HttpError =>
    new HttpError(400, `tool_choice: expected ${what}.`, { param: 'tool_choice' });
  if (tools.length === 0) throw refused('"tools" beside it');
  const wanted = typeof tool_choice === 'object' ? tool_choice.function.name : undefined;
  const callable = tools.filter(({ function: { name } }) => wanted === undefined || name === wanted);
  if (callable.length === 0) {
    const names = tools.map(({ function: { name } }) => JSON.stringify(name)).join(', ');
    throw refused(`the name of a tool, one of ${names}, got ${JSON.stringify(wanted)}`);
  }
  const tags = callable.map(({ function: { name, parameters = { type: 'object' } } }) => ({
    ...callTag(name),
    jsonSchema: parameters,
  }));
  const isSingle = wanted !== undefined || parallel_tool_calls === false;
  return { tags, ...(!isSingle && { separator: '\n' }) } as GenerateOptions['constraint'];
}
