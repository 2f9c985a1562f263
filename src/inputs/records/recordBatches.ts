/** @file Batches of features of records: a tensor for each feature, or several, and the weights of the rows. */
import { z } from 'zod';
import { type HostTensor, sizeOf } from '../../compiler/program/index.js';
import { instance } from '../../hparams/index.js';
import type { Batch, BatchSpecs } from '../batch.js';
import { paddingOf } from '../batchRows.js';
import { InputError } from '../inputErrors.js';
import type { ExampleOptions } from '../inputSource.js';
import { BaseFeature, type FeatureSpec, type FeatureSpecs } from './features.js';
import { checkedValues } from './featureValues.js';
import { type DataRecord, recordOf } from './recordTable.js';

/** Weight of each row of a batch: 1, or 0 for padding. */
const WEIGHTS = 'weights';

export type Features = Readonly<Record<string, BaseFeature>>;

/** The field of a batch's features. */
export const features = z
  .record(z.string(), instance(BaseFeature, null))
  .refine((features) => Object.keys(features).length > 0, { error: 'expected at least one feature' })
  .refine((features) => !Object.hasOwn(features, WEIGHTS), { error: `'${WEIGHTS}' is the weight of a row` })
  .describe("A batch's tensors by name.");

const isOne = (spec: FeatureSpec | FeatureSpecs): spec is FeatureSpec => Array.isArray(spec.shape);

/** Specs of a batch: [batchSize, …] of each feature, and the weights [batchSize]. */
export function recordSpecs(features: Features, batchSize: number): BatchSpecs {
  const rows = ({ shape, dtype }: FeatureSpec) => ({ shape: [batchSize, ...shape], dtype });
  const specs = Object.entries(features).map(([name, feature]): [string, BatchSpecs[string]] => {
    const spec = feature.spec();
    const parts = () => Object.entries(spec).map(([part, own]) => [part, rows(own as FeatureSpec)]);
    return [name, isOne(spec) ? rows(spec) : Object.fromEntries(parts())];
  });
  return { ...Object.fromEntries(specs), [WEIGHTS]: { shape: [batchSize], dtype: 'float32' } };
}

/** The arrays of all features by path: `text.ids` of a feature of several. */
export function featureArrays(features: Features): [path: string, spec: FeatureSpec][] {
  return Object.entries(features).flatMap(([name, feature]) => {
    const spec = feature.spec();
    if (isOne(spec)) return [[name, spec] as [string, FeatureSpec]];
    return Object.entries(spec).map(([part, own]): [string, FeatureSpec] => [`${name}.${part}`, own]);
  });
}

/** The feature that an array at a path of the batch belongs to, and the array's name in it, '' where it is the only one. */
export function featureAt(features: Features, path: string): readonly [BaseFeature | undefined, string] {
  if (Object.hasOwn(features, path)) return [features[path], ''];
  const [name = '', ...part] = path.split('.');
  return [Object.hasOwn(features, name) ? features[name] : undefined, part.join('.')];
}

/** Values of a row by the paths of a batch's tensors. */
export type Row = Readonly<Record<string, ArrayLike<number>>>;

function arrayAt(batch: Batch, path: string): HostTensor {
  if (Object.hasOwn(batch, path)) return batch[path] as HostTensor;
  return path.split('.').reduce<unknown>((at, step) => (at as Batch)[step], batch) as HostTensor;
}

/** Writes row `b` of a batch, with weight 1. */
export function writeRow(batch: Batch, b: number, row: Row): void {
  for (const [path, values] of [...Object.entries(row), [WEIGHTS, [1]] as const])
    (arrayAt(batch, path).data as Float32Array | Int32Array).set(values, b * values.length);
}

/** Reads a record's values. */
export type RowReader = (record: DataRecord, place: () => string) => Row;

/** Reader of the features of records. @param options of `BaseFeature.valuesOf` @throws InputError with the record's place and the feature's name */
export function rowReader(features: Features, options?: Pick<ExampleOptions, 'readsFiles'>): RowReader {
  const readers = Object.entries(features).map(([name, feature]) => {
    const arrays = featureArrays({ [name]: feature }).map(([path, { shape, dtype }]) => {
      return { path, part: path.slice(name.length + 1), dtype, size: sizeOf(shape) };
    });
    return { name, feature, arrays };
  });
  return (record, place) => {
    const row: Record<string, ArrayLike<number>> = {};
    for (const { name, feature, arrays } of readers) {
      try {
        const values = feature.valuesOf(record, options);
        for (const { path, part, dtype, size } of arrays)
          row[path] = checkedValues(isValues(values) ? values : values[part], path, dtype, size);
      } catch (error) {
        if (!(error instanceof InputError)) throw error;
        throw new InputError(`${place()}: feature '${name}', ${error.message}`, { cause: error });
      }
    }
    return row;
  };
}

const isValues = (values: ReturnType<BaseFeature['valuesOf']>): values is ArrayLike<number> =>
  typeof values.length === 'number';

/**
 * A batch of records alone, with the features that `paths` belong to. A text stands for a record of the one column that
 * these features read text from.
 *
 * @throws InputError with the record's number and the feature's name
 */
export function recordBatch(
  features: Features,
  records: readonly unknown[],
  paths: readonly string[],
  { first, readsFiles }: ExampleOptions,
): Batch {
  const names = new Set(paths.map((path) => (Object.hasOwn(features, path) ? path : path.split('.')[0]!)));
  const wanted = Object.fromEntries(Object.entries(features).filter(([name]) => names.has(name)));
  const columns = new Set(Object.values(wanted).flatMap(({ textColumn }) => textColumn ?? []));
  const [column] = columns;
  const batch = paddingOf(recordSpecs(wanted, records.length));
  const read = rowReader(wanted, { readsFiles });
  for (const [i, given] of records.entries()) {
    const place = () => `record ${first + i}`;
    const isText = typeof given === 'string' && columns.size === 1;
    writeRow(batch, i, read(isText ? { [column!]: given } : recordOf(given, place), place));
  }
  return batch;
}
