/** @file Types of a model of one's own: what follows from `computePredictions` needs no annotation. */
import { expect, expectTypeOf, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { runInContext } from '../../src/layers/index.js';
import { BaseModel, type TensorBatch, type WeightedScalars } from '../../src/models/index.js';

class Twice extends BaseModel.with({}) {
  override computePredictions(batch: TensorBatch) {
    return { outputs: tf.mul(this.tensorOf(batch, 'x'), 2) as Tensor, factor: 2 };
  }

  override computeLoss = this.loss((predictions, batch) => {
    expectTypeOf(predictions.outputs).toEqualTypeOf<Tensor>();
    expectTypeOf(predictions.factor).toEqualTypeOf<number>();
    expectTypeOf(batch).toEqualTypeOf<TensorBatch>();
    // @ts-expect-error the predictions have no logits
    expect(predictions.logits).toBeUndefined();
    return [{ total_loss: [tf.sum(predictions.outputs), tf.scalar(1)] }, { y: this.tensorOf(batch, 'x') }];
  });
}

test('the predictions in a loss have the type that computePredictions returns', () => {
  const model = build(Twice.config());
  const x = tf.tensor1d([1, 2]);
  const [metrics, perExample] = runInContext({ theta: {} }, () => model.fprop({ x }));
  expectTypeOf(model.computeLoss({ outputs: x, factor: 1 }, { x })).toEqualTypeOf<
    [WeightedScalars, Readonly<Record<string, Tensor>>]
  >();
  expect([metrics.total_loss![0].dataSync()[0], perExample.y]).toEqual([6, x]);
});
