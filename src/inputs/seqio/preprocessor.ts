/** @file Preprocessors: from examples to examples, one for one, or fewer, or more. */
import { z } from 'zod';
import { builds, Configurable, didYouMean } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { DataRecord } from '../records/recordTable.js';
import { shown } from '../shown.js';
import type { ExampleDraws } from './exampleDraws.js';
import type { Feature } from './feature.js';

/** An example on its way: text, token ids (Int32Array) and other values by name. */
export type Example = DataRecord;

/** Context of a preprocessor beside the example. */
export interface PreprocessContext {
  /** The features that the task gives. */
  readonly features: Readonly<Record<string, Feature>>;
  /** `taskFeatureLengths` of the input. */
  readonly lengths: Readonly<Record<string, number>>;
  /** Random numbers of this preprocessor for this example: the same in every run, on every host. */
  readonly draws: ExampleDraws;
}

/** A step of preprocessing, which depends on nothing but its examples and their random numbers. */
export interface Preprocessor {
  /** How many examples it takes at a time. */
  readonly examplesAtOnce: number;
  /** Whether one example gives exactly one, so that rows can be numbered without reading those before them. */
  readonly isOneToOne: boolean;
  /** The results for `examplesAtOnce` examples, or for fewer at the end of a group. */
  apply(examples: readonly Example[], context: PreprocessContext): Iterable<Example>;
}

/** Whether each example gives exactly one. */
export function areOneToOne(stages: readonly Preprocessor[]): boolean {
  return stages.every((stage) => stage.isOneToOne && stage.examplesAtOnce === 1);
}

/** A function of one's own: an example from an example. */
export type ExampleFunction = (example: Example, context: PreprocessContext) => Example;

/** Base of preprocessors that take one example at a time. */
export abstract class BasePreprocessor extends Configurable.with({}) implements Preprocessor {
  static override readonly isAbstract = true;

  get examplesAtOnce(): number {
    return 1;
  }

  get isOneToOne(): boolean {
    return false;
  }

  abstract apply(examples: readonly Example[], context: PreprocessContext): Iterable<Example>;
}

/** Base of preprocessors that make one example of each. */
export abstract class MapPreprocessor extends BasePreprocessor {
  static override readonly isAbstract = true;

  override get isOneToOne(): boolean {
    return true;
  }

  override apply([example]: readonly Example[], context: PreprocessContext): Iterable<Example> {
    return [this.map(example!, context)];
  }

  protected abstract map(example: Example, context: PreprocessContext): Example;
}

/** A function of an example, from the config of a configurable function that returns it. */
export function exampleFunction<R>(result: string) {
  return builds<(example: Example, context: PreprocessContext) => R>(
    `a function from an example to ${result}`,
    (made) => typeof made === 'function',
  );
}

/** The field of a task's preprocessors. */
export const preprocessors = z
  .array(
    builds<BasePreprocessor | ExampleFunction>(
      'a preprocessor, or a function from an example to an example',
      (made) => made instanceof BasePreprocessor || typeof made === 'function',
    ),
  )
  .describe('Steps from a record to the features, in order: preprocessors, or functions of an example.');

/** A preprocessor as the pipeline runs it. */
export function preprocessorOf(given: BasePreprocessor | ExampleFunction): Preprocessor {
  if (given instanceof BasePreprocessor) return given;
  return {
    examplesAtOnce: 1,
    isOneToOne: true,
    apply: ([example], context) => [given(example!, context)],
  };
}

/** The value of an example's feature. @throws InputError with the names that there are */
export function valueAt(example: Example, name: string): unknown {
  if (Object.hasOwn(example, name)) return example[name];
  const names = Object.keys(example);
  throw new InputError(
    `the example has no '${name}'.${didYouMean(name, names)} It has: ${names.join(', ')}.`,
  );
}

/** A feature of a task. @param use why a preprocessor needs it @throws InputError where the task lacks it */
export function featureOf({ features }: PreprocessContext, name: string, use: string): Feature {
  const feature = features[name];
  if (feature !== undefined) return feature;
  throw new InputError(
    `the task has no feature '${name}', ${use}. It has: ${Object.keys(features).join(', ')}.`,
  );
}

/** A token id that fits the arrays of a batch. */
export const tokenId = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);

/**
 * The token ids of an example's feature, some of them marked as `uncounted` does.
 *
 * @throws InputError where it is missing or no list of integers, and for those that int32 does not hold
 */
export function tokensOf(example: Example, name: string): Int32Array {
  const value = valueAt(example, name);
  if (value instanceof Int32Array) return value;
  const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
  if (!isList)
    throw new InputError(
      `'${name}': expected token ids, got ${shown(value)}.${typeof value === 'string' ? ' Put Tokenize before it.' : ''}`,
    );
  const given = value as ArrayLike<unknown>;
  const ids = new Int32Array(given.length);
  for (let i = 0; i < ids.length; i++) {
    const id = given[i];
    if (typeof id !== 'number' || id !== (id | 0))
      throw new InputError(
        `'${name}', position ${i}: expected a token id, an integer from -2147483648 to 2147483647, got ${shown(id)}.`,
      );
    ids[i] = id;
  }
  return ids;
}
