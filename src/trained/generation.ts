/** @file Settings of a continuation: how tokens are drawn, and where the text ends. */
import { z } from 'zod';
import { adjustmentsOf, constraintField, SampleDecoder, type SamplingRule } from '../decoding/index.js';
import { build, Configurable, type ConfigValues } from '../hparams/index.js';
import type { Decode } from '../tasks/index.js';

/** Schemas of a continuation's settings. */
export const generationFields = {
  temperature: z.number().nonnegative().describe('Divides the logits; 0 chooses the likeliest token.'),
  topK: z.int().nonnegative().describe('Draws from the k likeliest tokens; 0 for all.'),
  topP: z
    .number()
    .positive()
    .max(1)
    .nullable()
    .describe(
      'Draws from the smallest set of likely tokens whose probabilities sum to p or more; null for all.',
    ),
  minP: z
    .number()
    .nonnegative()
    .max(1)
    .default(0)
    .describe('Draws from tokens at least this times as likely as the likeliest; 0 for all.'),
  repetitionPenalty: z
    .number()
    .positive()
    .default(1)
    .describe(
      'Divides positive logits of tokens that the prompt or its continuation has, and multiplies others; 1 for none.',
    ),
  presencePenalty: z
    .number()
    .default(0)
    .describe('Subtracted from the logits of tokens that the continuation has.'),
  frequencyPenalty: z
    .number()
    .default(0)
    .describe('Subtracted from the logits of tokens for each time that the continuation has them.'),
  logitBias: z
    .record(z.string().regex(/^\d+$/), z.number())
    .default({})
    .describe('Added to the logits of token ids, before penalties: {"7": -100} for never.'),
  logprobs: z
    .int()
    .nonnegative()
    .nullable()
    .default(null)
    .describe('Scores of the drawn tokens, each with as many of the likeliest others; null for no scores.'),
  scoresPrompt: z
    .boolean()
    .default(false)
    .describe("Whether the prompt's tokens get scores, too. It is then computed token by token."),
  maxTokens: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Most tokens after the prompt; null for as many as the model's context allows."),
  stop: z
    .union([z.string().min(1), z.array(z.string().min(1))])
    .default([])
    .describe('Stop sequences, which are not part of the continuation.'),
  seed: z.int().nonnegative().describe('Seed of the draws: the same seed, the same text.'),
  constraint: constraintField
    .nullable()
    .default(null)
    .describe(
      "Texts that the continuation is of: { regex }, { grammar }, { jsonSchema }, { json: 'object' }, { tags }; null for all.",
    ),
};

/** A continuation's settings. */
export class Generation extends Configurable.with(generationFields) {}

/** Settings of a continuation. The experiment's `task.decode` gives the defaults. */
export type GenerateOptions = Partial<ConfigValues<Generation>>;

/** Fields of drawing that a decoder has as well, by the value of decoders that lack them. */
const NEUTRAL = { minP: 0, repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, logitBias: {} };

/** The settings of `task.decode`, which those of a request replace. */
export function generationDefaults({ hp: { decoder, randomSeed: seed } }: Decode): GenerateOptions {
  const own = decoder instanceof SampleDecoder ? decoder.hp : { ...NEUTRAL, temperature: 0, k: 0, p: null };
  const { temperature, k: topK, p: topP, minP } = own;
  const { repetitionPenalty, presencePenalty, frequencyPenalty, logitBias } = own;
  const { maxDecodeSteps: maxTokens, constraint } = decoder.hp;
  return {
    ...{ temperature, topK, topP, minP, repetitionPenalty, presencePenalty, frequencyPenalty },
    ...{ logitBias: { ...logitBias }, maxTokens, seed, constraint },
  };
}

/** Checked settings. @throws ConfigError for unknown names and values that don't fit */
export function generationOf(defaults: GenerateOptions, options: GenerateOptions): Generation['hp'] {
  return build(Generation.config({ ...defaults, ...options })).hp;
}

/** Names of the settings that need a decoder which draws by the rule of each row, and change something. */
export function rowSettingsIn(options: GenerateOptions): readonly string[] {
  const { temperature, topK, topP, logprobs, scoresPrompt = false, logitBias = {}, ...others } = options;
  const always = Object.entries({ temperature, topK, topP, logprobs });
  const penalties = Object.entries(others).filter(
    ([name, value]) => Object.hasOwn(NEUTRAL, name) && value !== NEUTRAL[name as keyof typeof NEUTRAL],
  );
  return [
    ...[...always, ...penalties].flatMap(([name, value]) =>
      (value ?? undefined) === undefined ? [] : [name],
    ),
    ...(scoresPrompt ? ['scoresPrompt'] : []),
    ...(Object.values(logitBias).some((bias) => bias !== 0) ? ['logitBias'] : []),
  ];
}

/** The rule of a decoder with the settings of a continuation. */
export function ruleOf(rule: SamplingRule, settings: Generation['hp']): SamplingRule {
  const { temperature, topK: k, topP: p, minP } = settings;
  const { repetitionPenalty, presencePenalty, frequencyPenalty, logitBias } = settings;
  const { minDecodeSteps: least = 0, eosIds = [] } = rule.adjustments ?? {};
  // A constraint holds ends back itself, since it may allow nothing else.
  const minDecodeSteps = settings.constraint ? 0 : least;
  const adjustments = adjustmentsOf({
    ...{ repetitionPenalty, presencePenalty, frequencyPenalty, logitBias },
    ...{ minDecodeSteps, eosIds },
  });
  return { ...rule, temperature, k, p, minP, adjustments };
}
