/** @file CacheDatasetPlaceholder: the place among a task's preprocessors up to which examples are cached (seqio). */
import { z } from 'zod';
import { type Example, MapPreprocessor } from './preprocessor.js';

/**
 * Marks the cached part of a pipeline: `luthier cache-task` stores the results of the preprocessors before it, and
 * those behind it run whenever examples are read. Preprocessors that draw at random, or depend on
 * `taskFeatureLengths`, belong behind it.
 */
export class CacheDatasetPlaceholder extends MapPreprocessor.with({
  required: z
    .boolean()
    .default(false)
    .describe('Whether the task may be read from a cache only: an input without `useCached` is an error.'),
}) {
  protected override map(example: Example): Example {
    return example;
  }
}
