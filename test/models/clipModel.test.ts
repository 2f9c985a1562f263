/** @file ClipModel: the symmetric loss by hand, padding, the learned temperature and its limit. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  FeedForward,
  Identity,
  initVariables,
  PositionalEmbedding,
  StackedTransformer,
  TransformerTextEncoder,
} from '../../src/layers/index.js';
import { ClipModel } from '../../src/models/index.js';
import { expectClose, ints, randomTheta, run, tensor } from '../layers/helpers.js';

const [B, T] = [3, 4];
const model = build(
  ClipModel.config({
    imageTpl: FeedForward.config({ inputDims: 6, outputDims: 5, activationTpl: Identity.config() }),
    imageDims: 5,
    textTpl: TransformerTextEncoder.config({
      ...{ vocabSize: 9, modelDims: 4, positionEmbTpl: PositionalEmbedding.config() },
      stackedTransformerTpl: StackedTransformer.config({ numLayers: 1, hiddenDims: 5, numHeads: 2 }),
    }),
    projectionDims: 3,
  }),
);
const theta = randomTheta(model);
const batchOf = (extra: Record<string, Tensor> = {}): Record<string, Tensor> => ({
  image: tensor([B, 6]),
  ids: ints([3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 8, 0], [B, T]),
  paddings: tf.tensor2d([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1], [B, T]),
  ...extra,
});

test('the loss is the mean of both directions, of vectors of unit length', () => {
  const [metrics, perExample] = run(theta, () => model.fprop(batchOf()));
  const [images, texts] = [perExample.image_embeddings!, perExample.text_embeddings!].map(
    (x) => x.arraySync() as number[][],
  );
  for (const row of [...images!, ...texts!]) expect(Math.hypot(...row)).toBeCloseTo(1, 5);
  const scale = Math.exp(theta.logit_scale!.dataSync()[0]!);
  const logits = images!.map((image) =>
    texts!.map((text) => scale * image.reduce((sum, x, k) => sum + x * text[k]!, 0)),
  );
  const transposed = logits.map((_, i) => logits.map((row) => row[i]!));
  const xent = (rows: number[][]) =>
    rows.reduce((sum, row, i) => sum + (Math.log(row.reduce((s, x) => s + Math.exp(x), 0)) - row[i]!) / B, 0);
  const hits = (rows: number[][]) => rows.filter((row, i) => row.indexOf(Math.max(...row)) === i).length / B;
  const loss = (xent(logits) + xent(transposed)) / 2;
  const expected: Record<string, [number, number]> = {
    ...{ total_loss: [loss, B], contrastive_loss: [loss, B] },
    ...{ image_to_text_accuracy: [hits(logits), B], text_to_image_accuracy: [hits(transposed), B] },
    temperature: [1 / scale, 1],
  };
  expect(Object.keys(metrics)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected)) expectClose(tf.stack([...metrics[name]!]), values);
});

test('a row of padding is no candidate, whatever it holds', () => {
  const two = (x: Tensor): Tensor => tf.slice(x, [0], [2]) as Tensor;
  const alone = Object.fromEntries(Object.entries(batchOf()).map(([name, x]) => [name, two(x)]));
  const image = tf.concat([two(batchOf().image!), tf.fill([1, 6], Number.NaN)]) as Tensor;
  const lossOf = (batch: Record<string, Tensor>) => (values: Tensor) =>
    run({ ...theta, 'text_projection/w': values }, () => model.fprop(batch)[0].total_loss![0]) as tf.Scalar;
  const padded = batchOf({ image, weights: tf.tensor1d([1, 1, 0]) as Tensor });
  const w = theta['text_projection/w']!;
  expectClose(lossOf(padded)(w), lossOf(alone)(w).dataSync());
  expectClose(tf.grad(lossOf(padded))(w), tf.grad(lossOf(alone))(w).dataSync());
});

test('the temperature begins where it is set, and is 0.01 at least', () => {
  expect(initVariables(model, 1).get('logit_scale')![0]).toBeCloseTo(Math.log(1 / 0.07), 5);
  const at = (logitScale: number) =>
    run(
      { ...theta, logit_scale: tf.scalar(logitScale) as Tensor },
      () => model.fprop(batchOf())[0].temperature![0],
    );
  expectClose(at(Math.log(50)), [0.02]);
  expectClose(at(9), [0.01]);
});
