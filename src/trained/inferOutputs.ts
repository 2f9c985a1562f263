/** @file Outputs of an inference, all shards together. */
import { join } from 'node:path';
import { z } from 'zod';
import { explain, parseJson, readJsonFile, readRegularFile } from '../files/index.js';
import { build } from '../hparams/index.js';
import { nestedRow, type RowValues, TfRecordSource } from '../inputs/index.js';
import { JobError } from '../programs/index.js';
import { EXAMPLE_ID } from '../tasks/index.js';

/** Outputs for an example by name, and its number in the data. */
type InferredExample = Readonly<Record<string, RowValues>> & { readonly example_id: number };

/** Outputs for a dataset. */
export interface InferOutputs {
  /** Step of the checkpoint. */
  readonly step: number;
  readonly numShards: number;
  /** In the order of their numbers. */
  readonly examples: readonly InferredExample[];
}

const metadata = z.looseObject({
  restore_checkpoint_step: z.int(),
  output_format: z.enum(['tfrecord', 'jsonl']),
  output_num_shards: z.int().positive(),
});

const features = z.looseObject({
  featuresDict: z.object({
    features: z.record(
      z.string(),
      z.object({
        tensor: z.object({
          shape: z.object({ dimensions: z.array(z.string().regex(/^\d+$/)).default([]) }),
          dtype: z.string(),
        }),
      }),
    ),
  }),
});

/** Shapes of features by name, and whether they are whole numbers. */
type Features = ReadonlyMap<string, { readonly shape: readonly number[]; readonly isWhole: boolean }>;

/**
 * Reads what `--mode=infer` has written for a dataset.
 *
 * @param directory `output/<dataset>/checkpoint_<step>` of a run.
 * @throws JobError for outputs that are not there, not complete or damaged; InputError for a damaged record of a TFRecord file.
 */
export function loadInferOutputs(directory: string): InferOutputs {
  const about = read(join(directory, 'metadata.json'), (path) => readJsonFile(path, metadata));
  const { output_format: format, output_num_shards: numShards } = about;
  const padded = (number: number) => String(number).padStart(5, '0');
  const paths = Array.from({ length: numShards }, (_, shard) =>
    join(directory, `output.${format}-${padded(shard)}-of-${padded(numShards)}`),
  );
  const examples =
    format === 'jsonl'
      ? paths.flatMap(linesOf)
      : recordsOf(paths, read(join(directory, 'features.json'), featuresOf));
  examples.sort((a, b) => a.example_id - b.example_id);
  return { step: about.restore_checkpoint_step, numShards, examples };
}

function read<T>(path: string, from: (path: string) => T): T {
  try {
    return from(path);
  } catch (cause) {
    throw new JobError(`${path} is not that of complete outputs: ${explain(cause)}.`, { cause });
  }
}

const line = z.looseObject({ [EXAMPLE_ID]: z.int() });

function linesOf(path: string): InferredExample[] {
  const lines = read(path, readRegularFile).toString().split('\n');
  return lines.flatMap((text, i) =>
    text === '' ? [] : [read(`${path}:${i + 1}`, () => parseJson(text, line) as unknown as InferredExample)],
  );
}

function featuresOf(path: string): Features {
  const file = readJsonFile(path, features);
  return new Map(
    Object.entries(file.featuresDict.features).map(([name, { tensor }]) => [
      name,
      { shape: tensor.shape.dimensions.map(Number), isWhole: tensor.dtype !== 'float32' },
    ]),
  );
}

function recordsOf(files: string[], named: Features): InferredExample[] {
  const parsed = Object.fromEntries(
    [...named].map(([name, { shape, isWhole }]) => [
      name,
      { dtype: isWhole ? ('int64' as const) : ('float32' as const), shape: [...shape] },
    ]),
  );
  const table = build(TfRecordSource.config({ files, features: parsed })).open();
  try {
    return Array.from({ length: table.numRecords }, (_, i) => {
      const values = Object.entries(table.read(i)).map(([name, value]) => {
        const { shape } = named.get(name)!;
        const data = Float64Array.from([value].flat() as number[], Number);
        return [name, nestedRow({ shape: [1, ...shape], data }, 0)];
      });
      return Object.fromEntries(values) as InferredExample;
    });
  } finally {
    table.close();
  }
}
