/** @file Settings of a continuation: how tokens are drawn, and where the text ends. */
import { z } from 'zod';
import { SampleDecoder } from '../decoding/index.js';
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
};

/** A continuation's settings. */
export class Generation extends Configurable.with(generationFields) {}

/** Settings of a continuation. The experiment's `task.decode` gives the defaults. */
export type GenerateOptions = Partial<ConfigValues<Generation>>;

/** The settings of `task.decode`, which those of a request replace. */
export function generationDefaults({ hp: { decoder, randomSeed: seed } }: Decode): GenerateOptions {
  const isSampled = decoder instanceof SampleDecoder;
  const { temperature, k, p } = isSampled ? decoder.hp : { temperature: 0, k: 0, p: null };
  return { temperature, topK: k, topP: p, maxTokens: decoder.hp.maxDecodeSteps, seed };
}

/** Checked settings. @throws ConfigError for unknown names and values that don't fit */
export function generationOf(defaults: GenerateOptions, options: GenerateOptions): Generation['hp'] {
  return build(Generation.config({ ...defaults, ...options })).hp;
}
