/** @file CacheDatasetPlaceholder: the place among a task's preprocessors up to which examples are cached (seqio). */
import { z } from 'zod';
import { type Example, MapPreprocessor } from './preprocessor.js';

/**
 * Where caching ends: results of the preprocessors before it are what `luthier cache-task` stores, those behind it run each
 * time that examples are read. What draws at random, or depends on `taskFeatureLengths`, stands behind it.
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
