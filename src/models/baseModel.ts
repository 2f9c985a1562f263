/** @file BaseModel: predictions and losses of a batch (praxis/base_model.py). */
import { type Tensor, tf } from '../compiler/index.js';
import { flattenTree } from '../compiler/program/index.js';
import { didYouMean } from '../hparams/index.js';
import { BaseLayer, weightedSum } from '../layers/index.js';

/** A batch inside a program: tensors by name. What an input nests is read by path, with `tensorOf`. */
export type TensorBatch = Readonly<Record<string, Tensor>>;

/** A metric and its weight, both scalars: batches are averaged by weight. */
export type WeightedScalar = readonly [value: Tensor, weight: Tensor];

/** Metrics by name. One of them is the loss. */
export type WeightedScalars = Readonly<Record<string, WeightedScalar>>;

/** An array of ids that a model reads. */
export interface ReadIds {
  /** Its path in a batch. */
  readonly path: string;
  /** The model knows ids from 0 to count - 1. */
  readonly count: number;
  /** The field of the model's config that says so. */
  readonly field: string;
  /** One of them that stands in no place but padding, such as the blank of CTC. */
  readonly reserved?: {
    readonly id: number;
    /** Its role, for errors. */
    readonly what: string;
    /** The field of the model's config that says so. */
    readonly field: string;
    /** Path of the array that has 1 for padding; without that array, the batch has none. */
    readonly paddings: string;
  };
}

/** The ids of a part of a model. @param field the field of the model's config that holds the part */
export const idsBelow = (field: string, ids: readonly ReadIds[]): ReadIds[] =>
  ids.map((each) => ({ ...each, field: `${field}.${each.field}` }));

/** Settings of a model that rows of tokens have to agree with. */
export interface RowSettings {
  /** The field of the model's config that holds them. */
  readonly field: string;
  readonly packedInput: boolean;
  /** Visibility of the labels' places; absent where a model hides labels itself. */
  readonly modelType?: 'causal' | 'prefix' | 'bidirectional';
  readonly usePaddings?: boolean;
}

/** A loss of the predictions of the model `M`; see `BaseModel.computeLoss`. */
type LossOf<M extends BaseModel> = (
  predictions: ReturnType<M['computePredictions']>,
  batch: TensorBatch,
) => [WeightedScalars, Readonly<Record<string, Tensor>>];

/** Base of the models. The two methods run in one context, one after the other. */
export abstract class BaseModel extends BaseLayer {
  static override readonly isAbstract = true;
  /** Predictions of a batch. */
  abstract computePredictions(batch: TensorBatch): unknown;

  /** Metrics of a batch's predictions, and tensors that describe each example, with the batch in front. */
  abstract computeLoss(
    predictions: ReturnType<this['computePredictions']>,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>];

  /** The ids that it reads, which inputs have to keep to; none of it known where empty. */
  get readIds(): readonly ReadIds[] {
    return [];
  }

  /** The ids that its loss reads, besides `readIds`: an error for one that it doesn't know names their field. */
  get labelIds(): readonly ReadIds[] {
    return [];
  }

  /** Settings that inputs are compared with before the first step; null for a model that says nothing of rows. */
  get rowSettings(): RowSettings | null {
    return null;
  }

  /** The metrics of a batch, and tensors of each example: both methods, one after the other. */
  fprop(batch: TensorBatch): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    return this.computeLoss(this.computePredictions(batch) as ReturnType<this['computePredictions']>, batch);
  }

  /**
   * `computeLoss` as a function whose parameters and result need no types: they follow from `computePredictions`.
   *
   *     override computeLoss = this.loss((logits, batch) => [classificationMetrics(logits, …), { logits }]);
   */
  protected loss(computeLoss: LossOf<this>): LossOf<this> {
    return computeLoss;
  }

  /** The batch's tensor of this name, or path: 'images.inputs'. @throws LayerError with the names that the batch has. */
  protected tensorOf(batch: TensorBatch, name: string): Tensor {
    const tensors = flattenTree(batch, (value) => value instanceof tf.Tensor);
    const found = tensors.find(({ path }) => path === name);
    if (found) return found.value;
    const names = tensors.map(({ path }) => path);
    throw this.error(`the batch has no '${name}'.${didYouMean(name, names)} It has: ${names.join(', ')}.`);
  }

  /** Weights of the batch's rows, [B]: 1 each where it has none. @throws LayerError for another shape */
  protected rowWeights({ weights }: TensorBatch, rows: number): Tensor {
    if (weights === undefined) return tf.ones([rows]);
    if (weights.shape.join() === `${rows}`) return weights;
    throw this.error(
      `'weights' is [${weights.shape.join(', ')}]: expected a weight for each row, [${rows}].`,
    );
  }
}

/** The share of `weights` whose `predicted` ids are the `labels`, all of one shape; `totalWeight` is their sum. */
export function weightedAccuracy(
  predicted: Tensor,
  labels: Tensor,
  weights: Tensor,
  totalWeight: Tensor,
): Tensor {
  const hits = tf.cast(tf.equal(labels, predicted), 'float32');
  // 0 and not NaN for a batch that is all padding.
  return tf.div(weightedSum(hits, weights), tf.maximum(totalWeight, 1));
}
