/** @file The examples of data that ends, in the order of their numbers, without batches. */
import { placed } from '../inputErrors.js';
import { SkippedExamples } from '../skippedExamples.js';
import type { Segment } from './featureConverter.js';
import { Lane, type LaneSetting } from './lane.js';
import { type KeyedExample, Pipeline } from './pipeline.js';
import type { TaskExamples } from './taskExamples.js';

/** An example, as the preprocessors made it, with its number in `exampleIds`. */
export interface NumberedExample extends Pick<KeyedExample, 'example' | 'place'> {
  readonly id: number;
  readonly from: TaskExamples;
}

/** Example q of a lone task whose preprocessors make one of each record. @throws InputError with its place */
export function alignedExample(
  { tasks, features, converter, lengths, trims }: LaneSetting,
  q: number,
): NumberedExample & { readonly segment: Segment } {
  const [from] = tasks;
  const { stages, firstStage, hp } = from!.task;
  const given = { features: hp.features, lengths };
  const made: (NumberedExample & { readonly segment: Segment })[] = [];
  const emit = ({ example, place }: KeyedExample): void => {
    const segment = placed(place, () => converter.segmentOf(example, q, features[0]!, trims));
    made.push({ id: q, from: from!, example, place, segment });
  };
  new Pipeline(stages, given, emit, undefined, firstStage).push(from!.at(q));
  return made[0]!;
}

/** The first `numRows` examples of such a task, without broken ones that `onError` leaves out. */
export function* alignedExamples(setting: LaneSetting, numRows: number): Generator<NumberedExample> {
  const skipped = new SkippedExamples();
  for (let q = 0; q < numRows; q++) {
    const example = skipped.attempt(setting.onError, () => alignedExample(setting, q));
    if (example !== undefined) yield example;
  }
}

/** The examples of a lane that reads all data. @param atOnce those at the end that are fewer than this are left out */
export function* laneExamples(setting: LaneSetting, atOnce: number): Generator<NumberedExample> {
  let examples: NumberedExample[] = [];
  const onExample: LaneSetting['onExample'] = (id, from, { example, place }) => {
    examples.push({ id, from, example, place });
  };
  const lane = new Lane({ ...setting, skipped: new SkippedExamples(), onExample }, 0);
  while (lane.next() !== undefined) {
    const whole = examples.length - (examples.length % atOnce);
    yield* examples.slice(0, whole);
    examples = examples.slice(whole);
  }
}
