/** @file Decode: the settings of a task's decodes (paxml's tasks_lib.SingleTask.Decode). */
import { z } from 'zod';
import { BaseDecoder, GreedyDecoder } from '../decoding/index.js';
import { Configurable, instance } from '../hparams/index.js';

/** Prompts and their continuation: the beginning of each example is the prompt (Pax's SingleTask.Decode). */
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
