/** @file Batches of examples that are given, rather than read: for predictions, and the sources of decodes. */
import { prngKey } from '../../compiler/random/index.js';
import type { Batch } from '../batch.js';
import { paddingOf } from '../batchRows.js';
import { InputError, placed } from '../inputErrors.js';
import type { BaseFeatureConverter, FeatureLengths, Segment } from './featureConverter.js';
import { type KeyedExample, Pipeline } from './pipeline.js';
import type { Example } from './preprocessor.js';
import type { Task } from './seqioTask.js';

/**
 * A row for each example, as a task's preprocessors make one: of a record as its source has it, or of a text, which is the
 * `inputs` of a record without targets.
 *
 * @param options `first`: the number of the first example, for errors.
 * @throws InputError with the number of an example that does not fit
 */
export function rowsOfExamples(
  examples: readonly unknown[],
  { stages, hp: { features } }: Task,
  converter: BaseFeatureConverter,
  { lengths, first }: { readonly lengths: FeatureLengths['lengths']; readonly first: number },
): Batch {
  const batch = paddingOf(converter.batchSpecs(examples.length, lengths));
  const read = converter.readFeatures({ features, lengths });
  for (const [b, given] of examples.entries()) {
    const place = () => `example ${first + b}`;
    const segments: Segment[] = [];
    const emit = ({ example }: KeyedExample): void => {
      segments.push(placed(place, () => converter.segmentOf(example, b, read, false)));
    };
    const pipeline = new Pipeline(stages, { features, lengths }, emit);
    pipeline.push({ example: recordOf(given, place()), place, key: prngKey(0) });
    pipeline.flush();
    if (segments.length !== 1)
      throw new InputError(
        `${place()}: the task's preprocessors make ${segments.length} examples of it; expected one.`,
      );
    converter.fill(batch, b, segments, lengths);
  }
  return batch;
}

/** A given example as a record. @throws InputError for one that is neither a record nor a text */
function recordOf(given: unknown, place: string): Example {
  if (typeof given === 'string') return { inputs: given, targets: '' };
  if (typeof given === 'object' && given !== null && !(given instanceof Uint8Array)) return given as Example;
  throw new InputError(`${place}: expected a record, or a text, which is the inputs of one.`);
}
