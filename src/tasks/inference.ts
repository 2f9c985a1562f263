/** @file Inference: the outputs of a model for whole datasets, and the files that hold them (paxml's base_inference_runner.py). */
import { z } from 'zod';
import { CompilerError, type Tensor, tf } from '../compiler/index.js';
import { ConfigError, Configurable, didYouMean, instance } from '../hparams/index.js';
import type { BaseModel, TensorBatch } from '../models/index.js';

/** Tensors by name. */
type Tensors = Readonly<Record<string, Tensor>>;

/** The field of a record that has the number of its example. */
export const EXAMPLE_ID = 'example_id';

/** Draws of a model in inference (Pax's SingleTask.Infer). */
export class Infer extends Configurable.with({
  randomSeed: z
    .int()
    .nonnegative()
    .default(1234)
    .describe('Seed of what a model draws in inference, such as masks.'),
}) {}

/** Base of the functions from a batch to the outputs that are written. */
export abstract class BaseInferenceRunner extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /**
   * The outputs for a batch by name, with the batch's rows in front. Traced once for each shape of batches, as an evaluation is:
   * it may call the model's methods, and `batch` has the arrays of the input.
   */
  abstract infer(model: BaseModel, batch: TensorBatch): Tensors;
}

const names = z.array(z.string().min(1)).min(1);

/** The predictions of a model, with arrays of the batch beside them. */
export class ModelPredictions extends BaseInferenceRunner.with({
  outputs: names
    .nullable()
    .default(null)
    .describe(
      "Names of predictions, as computePredictions gives them; null: all that have the batch's rows.",
    ),
  batchArrays: z
    .array(z.string().min(1))
    .default([])
    .describe('Arrays of the batch that are written too, by path: ids, labels.'),
}) {
  override infer(model: BaseModel, batch: TensorBatch): Tensors {
    const { outputs, batchArrays } = this.hp;
    const predicted = Object.fromEntries(namedTensors(model.computePredictions(batch)));
    const rows = rowsOf(batch);
    const wanted = outputs ?? Object.keys(predicted).filter((name) => predicted[name]!.shape[0] === rows);
    return {
      ...picked(predicted, wanted, 'outputs', model.constructor.name),
      ...picked(Object.fromEntries(namedTensors(batch)), batchArrays, 'batchArrays', 'the batch'),
    };
  }
}

function picked(tensors: Tensors, wanted: readonly string[], field: string, owner: string): Tensors {
  return Object.fromEntries(
    wanted.map((name) => {
      const tensor = tensors[name];
      if (tensor !== undefined) return [name, tensor];
      const path = `task.inferWriter.inferenceRunner.${field}`;
      const known = Object.keys(tensors);
      throw new ConfigError(
        `${path} has '${name}', which ${owner} does not have.${didYouMean(name, known)} It has: ${known.join(', ')}.`,
        { path },
      );
    }),
  );
}

/** The tensors of the result of `computePredictions`, or of a batch, by path; a single one is called `predictions`. */
export function namedTensors(predictions: unknown, path = ''): [string, Tensor][] {
  if (predictions === null || predictions === undefined) return [];
  if (predictions instanceof tf.Tensor) return [[path === '' ? 'predictions' : path, predictions as Tensor]];
  if (typeof predictions !== 'object')
    throw new CompilerError(
      `computePredictions: expected tensors, got ${String(predictions)} at '${path || '<root>'}'.`,
    );
  return Object.entries(predictions).flatMap(([key, value]) =>
    namedTensors(value, path === '' ? key : `${path}.${key}`),
  );
}

/** Rows of a batch; undefined for one without arrays. */
export const rowsOf = (batch: TensorBatch): number | undefined => namedTensors(batch)[0]?.[1].shape[0];

/** The outputs that `--mode=infer` writes of each example, and their files (Pax's SingleTask.InferWriter). */
export class InferWriter extends Configurable.with({
  inferenceRunner: instance(BaseInferenceRunner, () => ModelPredictions.config()).describe(
    'The function from a batch to the outputs that are written.',
  ),
  outputFormat: z
    .enum(['tfrecord', 'jsonl'])
    .default('tfrecord')
    .describe('Records: tf.train.Example in TFRecord files, or a line of JSON each.'),
  outputNumShards: z.int().positive().max(99_999).default(32).describe('Files; batches go to them in turn.'),
  saveIntervalSeconds: z
    .number()
    .nonnegative()
    .default(10)
    .describe('Seconds between the points from which an interrupted job goes on; 0: each batch is one.'),
}) {}
