/** @file Fields that completions and chats share: how tokens are drawn, where texts end, how the answer comes. */
import { z } from 'zod';
import type { GenerateOptions } from '../generation.js';
import { expected, filled, only } from './bodyFields.js';
import { type ConstraintsByField, constraintFields, oneConstraint } from './constraintFields.js';

/** Limits of a server's requests. */
export interface Limits {
  /** Prompts of a request. */
  readonly prompts: number;
  /** Most tokens of a request. */
  readonly maxTokens: number;
  /** Continuations of a request: prompts, times `n`. */
  readonly continuations: number;
}

/** Most of the likeliest tokens that are told of each place. */
export const MOST_TOP = 20;

/** A number within bounds. */
const within = (least: number, most: number) => {
  const error = expected(`a number from ${least} to ${most}`);
  return z.number(error).min(least, error).max(most, error).optional();
};

/** An integer within bounds. */
export const integer = (least: number, most: number) => {
  const error = expected(
    Number.isFinite(most) ? `an integer from ${least} to ${most}` : `an integer from ${least}`,
  );
  return z.int(error).min(least, error).max(most, error).optional();
};

export const text = z.string(expected('a text'));
export const flag = z.boolean(expected('true or false'));

const above = expected('a number above 0, up to 1');
const positive = expected('a number above 0');
const stops = 'a text that is not empty, or a list of up to 4';
const bias = expected('a number from -100 to 100');

/** OpenAI's fields, and `top_k`, `min_p`, `repetition_penalty` besides them. */
export function requestFields({ maxTokens, continuations }: Limits) {
  return {
    model: text.optional(),
    max_tokens: integer(1, maxTokens),
    temperature: z.number(expected('a number from 0')).min(0, expected('a number from 0')).optional(),
    top_p: z.number(above).gt(0, above).max(1, above).optional(),
    top_k: integer(0, Number.POSITIVE_INFINITY),
    min_p: within(0, 1),
    presence_penalty: within(-2, 2),
    frequency_penalty: within(-2, 2),
    repetition_penalty: z.number(positive).gt(0, positive).optional(),
    logit_bias: z
      .record(
        z.string().regex(/^\d{1,9}$/, 'expected ids of tokens as names'),
        z.number(bias).min(-100, bias).max(100, bias),
        expected('biases of tokens by id'),
      )
      .optional(),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(4)], expected(stops)).optional(),
    seed: integer(0, Number.POSITIVE_INFINITY),
    n: integer(1, continuations),
    stream: flag.optional(),
    stream_options: z.preprocess(
      (value) => (typeof value === 'object' && value !== null ? filled(value) : value),
      z
        .strictObject(
          { include_usage: flag.optional(), include_obfuscation: only(false) },
          expected('an object with include_usage'),
        )
        .optional(),
    ),
    user: text.optional(),
    safety_identifier: text.optional(),
    prompt_cache_key: text.optional(),
    store: only(false),
    metadata: z.record(z.string(), text, expected('texts by name')).optional(),
    service_tier: only('auto', 'default'),
    ...constraintFields,
  };
}

/** Checked values of the fields. */
type Fields = z.output<z.ZodObject<ReturnType<typeof requestFields>>>;

/** What a request asks for, whatever its prompts. */
export interface RequestSettings {
  readonly model: string | undefined;
  /** Continuations of each prompt. */
  readonly samples: number;
  readonly isStreamed: boolean;
  /** Whether a stream ends with the usage of tokens. */
  readonly includesUsage: boolean;
  readonly options: GenerateOptions;
  /** The field that asks for the constraint, where there is one. */
  readonly constraintField: string | undefined;
}

/** The field of a setting: settings have the names of OpenAI's fields but for their case. */
export const fieldOf = ({ constraintField }: RequestSettings, setting: string): string =>
  setting === 'constraint' && constraintField !== undefined
    ? constraintField
    : setting.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * @param most tokens of a continuation, where the request says none.
 * @param constraints of fields besides those that completions and chats share.
 */
export function requestSettings(
  fields: Fields,
  most: number,
  constraints: ConstraintsByField = {},
): RequestSettings {
  const { temperature, top_p: topP, top_k: topK, min_p: minP, stop, seed, max_tokens } = fields;
  const { presence_penalty: presencePenalty, frequency_penalty: frequencyPenalty } = fields;
  const { repetition_penalty: repetitionPenalty, logit_bias: logitBias } = fields;
  const { constraint, field: constraintField } = oneConstraint(fields, constraints);
  const given = {
    ...{ temperature, topP, topK, minP, presencePenalty, frequencyPenalty, repetitionPenalty, logitBias },
    ...{ stop, seed, maxTokens: max_tokens ?? most, constraint },
  };
  return {
    constraintField,
    model: fields.model,
    samples: fields.n ?? 1,
    isStreamed: fields.stream === true,
    includesUsage: fields.stream_options?.include_usage === true,
    options: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  };
}
