/** @file Fields of SeqioInput (Pax's SeqIOInput.HParams). */
import { z } from 'zod';
import { type Rules, type RuleValues, sub } from '../../hparams/index.js';
import type { ExampleInput } from '../exampleInput.js';
import { BaseFeatureConverter } from './featureConverter.js';
import { LanguageModelFeatures } from './lmConverters.js';
import { MixtureOrTask } from './seqioTask.js';

/** The fields beside those of all inputs. */
export const seqioFields = {
  mixtureOrTask: sub(MixtureOrTask, null).describe('The examples.'),
  splitName: z
    .string()
    .min(1)
    .default('train')
    .describe("The split of the tasks' sources to read, or parts of splits: 'train[:90%]'."),
  taskFeatureLengths: z
    .record(z.string(), z.int().positive())
    .describe('Longest sequence of each feature that the converter reads; longer ones are trimmed.'),
  featureConverter: sub(BaseFeatureConverter, () => LanguageModelFeatures.config()).describe(
    'Converter from features to the arrays of a batch.',
  ),
  shuffle: z
    .boolean()
    .nullable()
    .default(null)
    .describe(
      'Whether training reads each epoch in a random order; null: it does. Evaluations read in order.',
    ),
  repeat: z
    .boolean()
    .nullable()
    .default(null)
    .describe('Whether to start over after the last example; null: in training only.'),
  trimOutputFeatures: z
    .boolean()
    .default(true)
    .describe('Whether longer sequences are trimmed; else they are errors.'),
  evalAutoPad: z
    .boolean()
    .default(true)
    .describe(
      'Whether padding fills the last batches of finite data; otherwise an incomplete batch is dropped.',
    ),
  evalNumExamples: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Examples to read of finite data; null: all.'),
  useCached: z
    .boolean()
    .default(false)
    .describe('Whether to read the caches that `luthier cache-task` wrote, instead of the records.'),
  cacheDirectory: z
    .string()
    .min(1)
    .default('out/cached_tasks')
    .describe('Directory of the caches, one folder each.'),
  numLanes: z
    .int()
    .positive()
    .default(16)
    .describe('Lanes of data that repeats: at least as many as hosts and threads that share it.'),
  packingRows: z
    .int()
    .positive()
    .default(64)
    .describe('Rows packed together, approximately: more rows waste less space and take more memory.'),
};

/** Rules between the fields. */
export const seqioRules: Rules<RuleValues<typeof ExampleInput, typeof seqioFields>> = (schema) =>
  schema
    .refine(
      ({ repeat, isTraining, evalLoopNumBatches: count }) =>
        !(repeat === true && !isTraining && (count === null || count === -1)),
      {
        path: ['evalLoopNumBatches'],
        error: 'must be a number of batches if repeat is true: the data is endless',
      },
    )
    .refine(
      ({ repeat, isTraining, evalNumExamples }) => evalNumExamples === null || !(repeat ?? isTraining),
      {
        path: ['evalNumExamples'],
        error: 'limits finite data, and this data repeats',
      },
    );
