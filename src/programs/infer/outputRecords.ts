/** @file Records of inference: the outputs for an example as a line of JSON, or as a tf.train.Example in a TFRecord frame. */
import type { HostTensor, TensorSpec } from '../../compiler/index.js';
import { sizeOf } from '../../compiler/index.js';
import { tfRecord } from '../../files/index.js';
import { exampleBytes, type FeatureNumbers, nestedRow } from '../../inputs/index.js';
import { EXAMPLE_ID, type InferredBatch, type InferWriter } from '../../tasks/index.js';

/** A format of records, by which their files are called. */
export type OutputFormat = InferWriter['hp']['outputFormat'];

type Encode = (id: number, row: number, outputs: readonly (readonly [string, HostTensor])[]) => Uint8Array;

const ENCODE: Readonly<Record<OutputFormat, Encode>> = {
  jsonl: (id, row, outputs) => {
    const values = outputs.map(([name, tensor]) => [name, nestedRow(tensor, row)]);
    return Buffer.from(`${JSON.stringify({ [EXAMPLE_ID]: id, ...Object.fromEntries(values) })}\n`);
  },
  tfrecord: (id, row, outputs) => {
    const features = outputs.map(([name, { shape, data }]) => {
      const size = sizeOf(shape.slice(1));
      return [name, data.subarray(row * size, (row + 1) * size) as FeatureNumbers];
    });
    return tfRecord(exampleBytes({ [EXAMPLE_ID]: Int32Array.of(id), ...Object.fromEntries(features) }));
  },
};

/** The records of a batch's examples, one after the other. */
export function recordsOf(format: OutputFormat, { outputs, rows, exampleIds }: InferredBatch): Uint8Array {
  const named = Object.entries(outputs);
  return Buffer.concat(rows.map((row, i) => ENCODE[format](exampleIds[i]!, row, named)));
}

/** Shape, dtype and place of a feature in features.json of TensorFlow Datasets. */
function feature(shape: readonly number[], dtype: string): object {
  const name = shape.length === 0 ? 'scalar.Scalar' : 'tensor_feature.Tensor';
  const dimensions = shape.length === 0 ? {} : { dimensions: shape.map(String) };
  return {
    pythonClassName: `tensorflow_datasets.core.features.${name}`,
    tensor: { shape: dimensions, dtype, encoding: 'none' },
  };
}

/** Text of features.json, by which TensorFlow Datasets reads the records. @param specs of outputs, with the rows in front */
export function featuresText(specs: Readonly<Record<string, TensorSpec>>): string {
  const features = Object.entries(specs).map(([name, { shape, dtype }]) => [
    name,
    feature(shape.slice(1), dtype),
  ]);
  const all = { [EXAMPLE_ID]: feature([], 'int64'), ...Object.fromEntries(features) };
  const file = {
    pythonClassName: 'tensorflow_datasets.core.features.features_dict.FeaturesDict',
    featuresDict: { features: all },
  };
  return `${JSON.stringify(file, null, 1)}\n`;
}
