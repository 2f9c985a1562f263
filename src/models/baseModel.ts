/** @file BaseModel: what a task asks of a model. */
import type { Tensor } from '../compiler/index.js';
import { BaseLayer } from '../layers/index.js';

/** A batch inside a program: tensors by name. */
export type TensorBatch = Readonly<Record<string, Tensor>>;

/** A metric and its weight, both scalars: batches are averaged by weight. */
export type WeightedScalar = readonly [value: Tensor, weight: Tensor];

/** Metrics by name. One of them is the loss. */
export type WeightedScalars = Readonly<Record<string, WeightedScalar>>;

/** Base of the models. The two methods run in one context, one after the other. */
export abstract class BaseModel extends BaseLayer {
  /** What the model makes of a batch. */
  abstract computePredictions(batch: TensorBatch): unknown;

  /** Metrics of a batch's predictions, and tensors that describe each example, with the batch in front. */
  abstract computeLoss(
    predictions: ReturnType<this['computePredictions']>,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>];

  /** Both in one go. */
  fprop(batch: TensorBatch): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    return this.computeLoss(this.computePredictions(batch) as ReturnType<this['computePredictions']>, batch);
  }
}
