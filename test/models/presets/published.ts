/** @file Comparison of a published model's loss and gradients with those that transformers recorded (scripts/record_families.py). */
import { join } from 'node:path';
import { expect } from 'vitest';
import { SafetensorsFile } from '../../../src/checkpoints/index.js';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { type BaseLayer, listVariables } from '../../../src/layers/index.js';
import { pretrainedModel } from '../../../src/models/index.js';
import { isState, run } from '../../layers/helpers.js';
import { type loaded, loadedModel, thetaOf } from '../../programs/loadedModel.js';

/** Folders of the models, by family. */
export const publishedFamily = (name: string): string =>
  join(import.meta.dirname, '../../fixtures/published/families', name);

/** The recorded tensors of a folder, and the texts beside them. */
export const recordOf = (folder: string): SafetensorsFile =>
  new SafetensorsFile(join(folder, 'record.safetensors'));

const largest = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Largest difference in parts of the largest magnitude, `least` at least. */
export function distance(actual: ArrayLike<number>, expected: ArrayLike<number>, least = 1e-30): number {
  expect(actual.length).toBe(expected.length);
  return largest(Array.from(expected, (value, i) => value - actual[i]!)) / Math.max(largest(expected), least);
}

/** Expects the recorded loss, and gradients of all variables by it. */
export function expectGradients(
  model: BaseLayer,
  given: ReturnType<typeof loaded>,
  folder: string,
  loss: () => Tensor,
): void {
  const theta = thetaOf(given);
  const state = new Set(listVariables(model).flatMap((variable) => (isState(variable) ? variable.path : [])));
  const paths = Object.keys(theta).filter((path) => !state.has(path));
  const { value, grads } = tf.valueAndGrads((...xs: Tensor[]) => {
    const values = Object.fromEntries(paths.map((path, i) => [path, xs[i]!]));
    return run({ ...theta, ...values }, loss, { doEval: true }) as tf.Scalar;
  })(paths.map((path) => theta[path]!));
  const record = recordOf(folder);
  record.close();
  expect(distance(value.dataSync(), [Number(record.layout.metadata.loss)])).toBeLessThan(1e-5);
  const expected = loadedModel(pretrainedModel(folder), join(folder, 'gradients.safetensors')).state.views;
  // Some vanish, such as those of the biases of keys, which move all logits of a query alike: there is rounding alone.
  const least = 1e-3 * Math.max(...paths.map((path) => largest(expected[path]!)));
  const far = paths.filter((path, i) => !(distance(grads[i]!.dataSync(), expected[path]!, least) < 1e-4));
  expect(far).toEqual([]);
}
