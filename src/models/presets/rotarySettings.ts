/** @file The rotations of a published config.json. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  type BaseRotaryScaling,
  LinearRotaryScaling,
  Llama3RotaryScaling,
  RotaryPositionalEmbedding,
  YarnRotaryScaling,
} from '../../layers/index.js';

const count = z.int().positive();
const positive = z.number().positive();
const share = positive.max(1);

/** Rotations, as transformers writes them from version 5 on; before, all but rope_theta were `rope_scaling`. */
export const rotations = z.object({
  rope_theta: positive.optional(),
  rope_type: z.enum(['default', 'linear', 'llama3', 'yarn']).optional(),
  /** The name of rope_type in early files. */
  type: z.enum(['default', 'linear', 'llama3', 'yarn']).optional(),
  factor: positive.default(1),
  low_freq_factor: positive.default(1),
  high_freq_factor: positive.default(4),
  beta_fast: positive.nullish(),
  beta_slow: positive.nullish(),
  attention_factor: positive.nullish(),
  mscale: positive.nullish(),
  mscale_all_dim: positive.nullish(),
  truncate: z.boolean().default(true),
  original_max_position_embeddings: count.optional(),
  partial_rotary_factor: share.optional(),
});

/** Fields of a config.json that say how queries and keys are rotated. */
export const rotaryFields = {
  max_position_embeddings: count.default(2048),
  rope_theta: positive.optional(),
  partial_rotary_factor: share.optional(),
  rope_parameters: rotations.nullish(),
  rope_scaling: rotations.nullish(),
};

type RotarySettings = z.output<z.ZodObject<typeof rotaryFields>>;

/** The rotations that settings give, in whichever field and by whichever name of their kind. */
export function rotationsOf({
  rope_parameters,
  rope_scaling,
}: Pick<RotarySettings, 'rope_parameters' | 'rope_scaling'>) {
  const given = rope_parameters ?? rope_scaling ?? rotations.parse({});
  return { ...given, kind: given.rope_type ?? given.type ?? 'default' };
}

/** The rotations of a config.json. @param defaultTheta the family's base of the wavelengths */
export function rotaryOf(values: RotarySettings, defaultTheta = 10_000): Config<RotaryPositionalEmbedding> {
  const given = rotationsOf(values);
  const maxTimescale = given.rope_theta ?? values.rope_theta ?? defaultTheta;
  return RotaryPositionalEmbedding.config({
    maxTimescale,
    rotaryFraction: given.partial_rotary_factor ?? values.partial_rotary_factor ?? 1,
    scalingTpl: scalingOf(given, values.max_position_embeddings),
  });
}

function scalingOf(
  given: ReturnType<typeof rotationsOf>,
  maxPositions: number,
): Config<BaseRotaryScaling> | null {
  const { kind, factor, original_max_position_embeddings: original } = given;
  if (kind === 'default') return null;
  if (kind === 'linear') return LinearRotaryScaling.config({ factor });
  if (kind === 'yarn')
    return YarnRotaryScaling.config({
      ...{ factor, originalMaxSeqLength: original ?? maxPositions, truncate: given.truncate },
      ...{ betaFast: given.beta_fast ?? 32, betaSlow: given.beta_slow ?? 1 },
      attentionFactor: given.attention_factor ?? null,
      ...{ mscale: given.mscale ?? 0, mscaleAllDim: given.mscale_all_dim ?? 0 },
    });
  return Llama3RotaryScaling.config({
    ...{ factor, originalMaxSeqLength: original ?? 8192 },
    ...{ lowFrequencyFactor: given.low_freq_factor, highFrequencyFactor: given.high_freq_factor },
  });
}
