/** @file tf.train.Example: the features of a record by name. */
import { z } from 'zod';
import { ProtobufMessage, ProtobufReader } from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import { listed } from '../shown.js';
import { byteOf, utf8Text } from '../text/utf8.js';
import { float32Number } from './featureValues.js';
import type { DataRecord } from './recordTable.js';

/** Field numbers of Example, Features, a map's entry, and Feature (example.proto, feature.proto). */
const FEATURES = 1;
const ENTRIES = 1;
const [KEY, VALUE] = [1, 2];
const [BYTES_LIST, FLOAT_LIST, INT64_LIST] = [1, 2, 3];
const VALUES = 1;

/** Which list of a Feature holds each type. */
const LISTS = { bytes: BYTES_LIST, string: BYTES_LIST, float32: FLOAT_LIST, int64: INT64_LIST } as const;
const LIST_NAMES = ['none', 'bytes', 'float32', 'int64'];

/** Whether a default is a value of each type. */
const ACCEPTS: Readonly<Record<keyof typeof LISTS, (value: string | number) => boolean>> = {
  string: (value) => typeof value === 'string',
  float32: (value) => float32Number.safeParse(value).success,
  int64: Number.isSafeInteger,
  bytes: () => false,
};

/** Parsing of a feature, as by `tf.io.FixedLenFeature` and `tf.io.VarLenFeature`. */
export const exampleFeature = z
  .strictObject({
    dtype: z
      .enum(['string', 'bytes', 'float32', 'int64'])
      .describe("Type of the values; 'string' is bytes that are UTF-8."),
    shape: z
      .array(z.int().nonnegative())
      .nullable()
      .default([])
      .describe('[]: one value; [n, …]: as many, row-major; null: any number of values.'),
    default: z
      .union([z.string(), z.number()])
      .nullable()
      .default(null)
      .describe('Each value of a feature that an example lacks; null: that is an error.'),
  })
  .refine(({ dtype, default: missing }) => missing === null || ACCEPTS[dtype](missing), {
    path: ['default'],
    error: 'must be a value of the dtype: text, a number, or an integer; bytes have none',
  });

/** Features by name. */
export type ExampleFeatures = Readonly<Record<string, z.output<typeof exampleFeature>>>;

type Value = Uint8Array | string | number | bigint;

/**
 * The record of a serialized tf.train.Example: one value, or an array of them, for each of `features`.
 *
 * @param place of the example.
 * @throws InputError with the place, for malformed examples and other features.
 */
export function parseExample(bytes: Buffer, features: ExampleFeatures, place: () => string): DataRecord {
  const found = new Map<string, { readonly list: number; readonly values: Value[] }>();
  try {
    readExample(bytes, (name, list, values) => found.set(name, { list, values }));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InputError(`${place()}: not a tf.train.Example: ${error.message}.`, { cause: error });
  }
  return Object.fromEntries(
    Object.entries(features).map(([name, { dtype, shape, default: missing }]) => {
      const { list, values } = found.get(name) ?? { list: 0, values: [] };
      const problem = (what: string) => new InputError(`${place()}: feature '${name}' ${what}`);
      if (values.length > 0 && list !== LISTS[dtype])
        throw problem(`has values of type ${LIST_NAMES[list]}; expected ${dtype}.`);
      const count = shape?.reduce((product, length) => product * length, 1);
      if (values.length === 0 && count !== 0 && count !== undefined) {
        if (missing === null)
          throw problem(`is not there. The example has: ${listed([...found.keys()].sort()) || 'none'}.`);
        values.push(...Array<Value>(count).fill(missing));
      } else if (count !== undefined && values.length !== count)
        throw problem(`has ${values.length} values; expected ${count}, of shape [${shape!.join(', ')}].`);
      const typed =
        dtype === 'string'
          ? values.map((value) =>
              typeof value === 'string' ? value : textOf(value as Uint8Array, name, place),
            )
          : values;
      return [name, shape?.length === 0 ? typed[0]! : typed];
    }),
  );
}

const textOf = (bytes: Uint8Array, name: string, place: () => string): string =>
  utf8Text(bytes, (offset) => byteOf(`${place()}: feature '${name}'`)(offset));

/** Numbers of a feature: whole ones, or float32. */
export type FeatureNumbers = Float32Array | Int32Array | Uint8Array;

/** A serialized tf.train.Example; `parseExample` reads it. */
export function exampleBytes(features: Readonly<Record<string, FeatureNumbers>>): Uint8Array {
  const entries = new ProtobufMessage();
  for (const [name, numbers] of Object.entries(features)) {
    const feature = new ProtobufMessage();
    if (numbers instanceof Float32Array)
      feature.message(FLOAT_LIST, new ProtobufMessage().floats(VALUES, numbers));
    else feature.message(INT64_LIST, new ProtobufMessage().ints(VALUES, numbers));
    entries.message(ENTRIES, new ProtobufMessage().string(KEY, name).message(VALUE, feature));
  }
  return new ProtobufMessage().message(FEATURES, entries).bytes();
}

/** @throws RangeError for malformed examples. */
function readExample(bytes: Buffer, take: (name: string, list: number, values: Value[]) => void): void {
  for (const example = new ProtobufReader(bytes); example.next(); ) {
    if (example.field !== FEATURES) continue;
    for (const features = example.message; features.next(); ) {
      if (features.field !== ENTRIES) continue;
      let name = '';
      let feature: { readonly list: number; readonly values: Value[] } = { list: 0, values: [] };
      for (const entry = features.message; entry.next(); ) {
        if (entry.field === KEY) name = entry.blob.toString();
        else if (entry.field === VALUE) feature = readFeature(entry.message);
      }
      take(name, feature.list, feature.values);
    }
  }
}

function readFeature(feature: ProtobufReader): { list: number; values: Value[] } {
  let list = 0;
  let values: Value[] = [];
  while (feature.next()) {
    // A feature has one list, and the last one counts. Numbers of other fields are of later versions.
    if (feature.field > INT64_LIST) continue;
    if (feature.field !== list) values = [];
    list = feature.field;
    for (const items = feature.message; items.next(); ) {
      if (items.field !== VALUES) continue;
      if (list === BYTES_LIST) values.push(new Uint8Array(items.blob));
      else if (list === FLOAT_LIST) items.addFloats(values as number[]);
      else if (list === INT64_LIST) items.addInts(values as (number | bigint)[]);
    }
  }
  return { list, values };
}
