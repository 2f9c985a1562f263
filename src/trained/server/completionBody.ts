/** @file Bodies of POST /v1/completions: OpenAI's fields, as far as a trained run supports them. */
import { z } from 'zod';
import type { GenerateOptions } from '../generation.js';
import { checkedFields, expected, filled, only } from './bodyFields.js';

/** Limits of a server's requests. */
export interface Limits {
  /** Prompts of a request. */
  readonly prompts: number;
  /** Most tokens of a request. */
  readonly maxTokens: number;
}

/** OpenAI's fields that a trained run does not support, with their accepted neutral values. */
const neutral = {
  ...{ n: only(1), best_of: only(1), echo: only(false), logprobs: only(false), suffix: only('') },
  ...{ presence_penalty: only(0), frequency_penalty: only(0) },
  logit_bias: z.record(z.string(), only(0), expected('biases of tokens by id')).optional(),
};

function schemaFor({ prompts, maxTokens }: Limits) {
  const text = z.string(expected('a text'));
  const count = expected(`an integer from 1 to ${maxTokens}`);
  const stops = 'a text that is not empty, or a list of up to 4';
  return z.object({
    model: z.string(expected('a text')).optional(),
    prompt: z.union(
      [text, z.array(text).min(1).max(prompts)],
      expected(`a text, or a list of 1 to ${prompts}`),
    ),
    max_tokens: z.int(count).min(1, count).max(maxTokens, count).optional(),
    temperature: z.number(expected('a number from 0')).min(0, expected('a number from 0')).optional(),
    top_p: z
      .number(expected('a number above 0, up to 1'))
      .gt(0, expected('a number above 0, up to 1'))
      .max(1, expected('a number above 0, up to 1'))
      .optional(),
    top_k: z.int(expected('an integer from 0')).min(0, expected('an integer from 0')).optional(),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)], expected(stops)).optional(),
    seed: z.int(expected('an integer from 0')).min(0, expected('an integer from 0')).optional(),
    stream: z.boolean(expected('true or false')).optional(),
    stream_options: z.preprocess(
      (value) => (typeof value === 'object' && value !== null ? filled(value) : value),
      z
        .strictObject(
          {
            include_usage: z.boolean(expected('true or false')).optional(),
            include_obfuscation: only(false),
          },
          expected('an object with include_usage'),
        )
        .optional(),
    ),
    user: z.string(expected('a text')).optional(),
    ...neutral,
  });
}

/** A completion request. */
export interface CompletionRequest {
  readonly model: string | undefined;
  readonly prompts: readonly string[];
  readonly isStreamed: boolean;
  /** Whether a stream ends with the usage of tokens. */
  readonly includesUsage: boolean;
  readonly options: GenerateOptions;
}

/** Checks a body. @throws HttpError 400 with the field's name */
export function readBody(body: unknown, limits: Limits): CompletionRequest {
  const fields = checkedFields(body, schemaFor(limits), 'prompt');
  const { model, prompt, max_tokens, temperature, top_p, top_k, stop, seed, stream, stream_options } = fields;
  const given = { maxTokens: max_tokens, temperature, topP: top_p, topK: top_k, stop, seed };
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return {
    model,
    prompts: typeof prompt === 'string' ? [prompt] : prompt,
    isStreamed: stream === true,
    includesUsage: stream_options?.include_usage === true,
    options: { maxTokens: limits.maxTokens, ...options },
  };
}
