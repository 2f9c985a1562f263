/** @file Bodies of POST /v1/completions: OpenAI's fields, as far as a trained run supports them. */
import { z } from 'zod';
import { checkedFields, expected, only, schemaOf } from './bodyFields.js';
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

/** A text, or ids of tokens. */
export type Prompt = string | readonly number[];

/** A completion request. */
export interface CompletionRequest extends RequestSettings {
  readonly prompts: readonly Prompt[];
  /** Whether answers begin with their prompts. */
  readonly echoes: boolean;
}

const ids = z.array(z.int().nonnegative()).min(1);

const schemaFor = schemaOf((limits: Limits) => {
  const { prompts } = limits;
  const several = expected(`a text, or a list of 1 to ${prompts}`);
  const { model, ...others } = requestFields(limits);
  return z.object({
    model,
    prompt: z.union(
      [text, z.array(text).min(1).max(prompts), ids, z.array(ids).min(1).max(prompts)],
      several,
    ),
    ...others,
    echo: flag.optional(),
    logprobs: z
      .union(
        [z.literal(false), z.int().min(0).max(MOST_TOP)],
        expected(`an integer from 0 to ${MOST_TOP}, or false`),
      )
      .optional(),
    best_of: integer(1, limits.continuations),
    suffix: only(''),
  });
});

/** Prompts of a field that has one or several. */
function promptsOf(prompt: Prompt | readonly Prompt[]): readonly Prompt[] {
  if (typeof prompt === 'string' || typeof prompt[0] === 'number') return [prompt as Prompt];
  return prompt as readonly Prompt[];
}

/** Checks a body. @throws HttpError 400 with the field's name */
export function readBody(body: unknown, limits: Limits): CompletionRequest {
  const fields = checkedFields(body, schemaFor(limits), 'prompt');
  const settings = requestSettings(fields, limits.maxTokens);
  const prompts = promptsOf(fields.prompt);
  const { samples, options } = settings;
  const { best_of = samples, echo = false, logprobs = false } = fields;
  if (best_of !== samples)
    throw new HttpError(400, `best_of: expected ${samples}, as n, got ${best_of}.`, { param: 'best_of' });
  if (prompts.length * samples > limits.continuations)
    throw new HttpError(
      400,
      `n: expected at most ${limits.continuations} continuations, got ${prompts.length} prompts times ${samples}.`,
      { param: 'n' },
    );
  const scores = logprobs === false ? {} : { logprobs, scoresPrompt: echo };
  return { ...settings, prompts, echoes: echo, options: { ...options, ...scores } };
}
