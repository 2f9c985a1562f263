/** @file Decoding settings of a task: prompts from examples, and the decoder (Pax's SingleTask.Decode and LanguageModel.decoder_tpl). */
import { z } from 'zod';
import { BaseDecoder, GreedyDecoder } from '../decoding/index.js';
import { Configurable, instance } from '../hparams/index.js';

/** The beginning of each example of a decode dataset is the prompt; the decoder continues it. */
export class Decode extends Configurable.with({
  decoder: instance(BaseDecoder, () => GreedyDecoder.config()).describe(
    'Greedy or sampled; its seqlen must be set.',
  ),
  prefixLength: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Tokens of an example that are the prompt; null: drawn from the decoder's minPrefixLen up."),
  randomSeed: z.int().nonnegative().default(1234).describe('Seed of prompt lengths and samples.'),
}) {}
