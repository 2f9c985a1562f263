/** @file Bodies of POST /v1/completions: OpenAI's fields, as far as a trained run has what they ask for. */
import { z } from 'zod';
import { didYouMean } from '../../hparams/index.js';
import type { GenerateOptions } from '../generation.js';
import { HttpError } from './httpError.js';

/** Limits of a server's requests. */
export interface Limits {
  /** Prompts of a request. */
  readonly prompts: number;
  /** Tokens that a request may ask for. */
  readonly maxTokens: number;
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};
const expected = (what: string) => ({
  error: ({ input }: { readonly input?: unknown }) => `expected ${what}, got ${shown(input)}`,
});

/** A field of OpenAI's that only has its neutral value here. */
const only = <T extends number | boolean | null>(value: T) =>
  z.literal(value, expected(`${value}, as others are not supported`)).optional();

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
    max_tokens: z.int(count).min(1, count).max(maxTokens, count).nullish(),
    temperature: z.number(expected('a number from 0')).min(0, expected('a number from 0')).nullish(),
    top_p: z
      .number(expected('a number above 0, up to 1'))
      .gt(0, expected('a number above 0, up to 1'))
      .max(1, expected('a number above 0, up to 1'))
      .nullish(),
    top_k: z.int(expected('an integer from 0')).min(0, expected('an integer from 0')).nullish(),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)], expected(stops)).nullish(),
    seed: z.int(expected('an integer from 0')).min(0, expected('an integer from 0')).nullish(),
    stream: z.boolean(expected('true or false')).nullish(),
    user: z.string(expected('a text')).optional(),
    ...{ n: only(1), best_of: only(1), echo: only(false), logprobs: only(null), suffix: only(null) },
    ...{ presence_penalty: only(0), frequency_penalty: only(0) },
  });
}

/** What a request asks for. */
export interface CompletionRequest {
  readonly model: string | undefined;
  readonly prompts: readonly string[];
  readonly isStreamed: boolean;
  readonly options: GenerateOptions;
}

/** Checks a body. @throws HttpError 400 with the field's name */
export function readBody(body: unknown, limits: Limits): CompletionRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new HttpError(400, `The body: expected a JSON object, got ${shown(body)}.`);
  const schema = schemaFor(limits);
  const names = Object.keys(schema.shape);
  const unknown = Object.keys(body).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const told = `${shown(unknown)} is not supported.${didYouMean(unknown, names)} The fields are: ${names.join(', ')}.`;
    throw new HttpError(400, told, { param: unknown });
  }
  const checked = schema.safeParse(body);
  if (!checked.success) {
    const { path, message } = checked.error.issues[0]!;
    throw new HttpError(400, `${path.join('.')}: ${message}.`, { param: String(path[0]) });
  }
  const { model, prompt, max_tokens, temperature, top_p, top_k, stop, seed, stream } = checked.data;
  const given = { maxTokens: max_tokens, temperature, topP: top_p, topK: top_k, stop, seed };
  const options = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== null),
  );
  return {
    model,
    prompts: typeof prompt === 'string' ? [prompt] : prompt,
    isStreamed: stream === true,
    options: { maxTokens: limits.maxTokens, ...options },
  };
}
