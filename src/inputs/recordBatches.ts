/** @file Batches of features of records: a tensor for each feature, and the weights of the rows. */
import { z } from 'zod';
import { instance } from '../hparams/index.js';
import type { Batch, BatchSpecs } from './batch.js';
import { BaseFeature } from './features.js';
import { InputError } from './inputErrors.js';
import type { DataRecord } from './sources/recordTable.js';

/** Weight of each row of a batch: 1, or 0 for padding. */
const WEIGHTS = 'weights';

type Features = Readonly<Record<string, BaseFeature>>;

/** The field of a batch's features. */
export const features = z
  .record(z.string(), instance(BaseFeature, null))
  .refine((features) => Object.keys(features).length > 0, { error: 'expected at least one feature' })
  .refine((features) => !Object.hasOwn(features, WEIGHTS), { error: `'${WEIGHTS}' is the weight of a row` })
  .describe("A batch's tensors by name.");

/** Specs of a batch: [batchSize, …] of each feature, and the weights [batchSize]. */
export function recordSpecs(features: Features, batchSize: number): BatchSpecs {
  const specs = Object.entries(features).map(([name, feature]) => {
    const { shape, dtype } = feature.spec();
    return [name, { shape: [batchSize, ...shape], dtype }] as const;
  });
  return { ...Object.fromEntries(specs), [WEIGHTS]: { shape: [batchSize], dtype: 'float32' } };
}

/** Values of a row by the names of a batch's tensors. */
export type Row = Readonly<Record<string, ArrayLike<number>>>;

/** Writes row `b` of a batch, with weight 1. */
export function writeRow(batch: Batch, b: number, row: Row): void {
  for (const [name, values] of [...Object.entries(row), [WEIGHTS, [1]] as const])
    (batch[name]!.data as Float32Array | Int32Array).set(values, b * values.length);
}

/** A record's values of a feature. @throws InputError with the record's place and the feature's name */
export function valuesOf(
  record: DataRecord,
  place: () => string,
  name: string,
  feature: BaseFeature,
): ArrayLike<number> {
  try {
    return feature.valuesOf(record);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(`${place()}: feature '${name}', ${error.message}`, { cause: error });
  }
}
