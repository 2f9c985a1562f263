/** @file DistillationModel: PyTorch's losses, features by layer, gradients, decoding by the student. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { isDecodable } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { type BaseLayer, listVariables } from '../../src/layers/index.js';
import {
  BaseModel,
  DistillationModel,
  gpt2Lm,
  LanguageModel,
  type WeightedScalars,
} from '../../src/models/index.js';
import { checkSlope, expectClose, ints, randomTheta, run } from '../layers/helpers.js';
import { expectRecorded, recorded } from './recordedRecipes.js';

const [B, T, V] = [2, 4, 7];
const lm = (modelDims: number, numLayers: number) =>
  LanguageModel.config({
    lmTpl: gpt2Lm({ vocabSize: V, modelDims, numLayers, numHeads: 2, maxSeqLength: T }),
  });
const batch = {
  ids: ints([0, 3, 1, 4, 0, 2, 5, 6], [B, T]),
  labels: ints([3, 1, 4, 2, 2, 5, 6, 1], [B, T]),
  weights: tf.tensor2d([1, 1, 0.5, 1, 1, 1, 0, 0], [B, T]) as Tensor,
  paddings: tf.zeros([B, T]) as Tensor,
};
const features = [
  {
    student: 'lm/transformer/x_layers_0',
    teacher: 'lm/transformer/x_layers_1',
    studentDims: 4,
    teacherDims: 6,
  },
];
const distilled = (values = {}) =>
  build(DistillationModel.config({ studentTpl: lm(4, 1), teacherTpl: lm(6, 2), ...values }));

/** A model whose logits are those of the batch, of a network of the name. */
class GivenLogits extends BaseModel.with({}) {
  override computePredictions(given: Record<string, Tensor>): { logits: Tensor } {
    return { logits: given[this.path]! };
  }
  override computeLoss({ logits }: { logits: Tensor }, { labels, weights }: Record<string, Tensor>) {
    const xent = tf.neg(tf.sum(tf.mul(tf.oneHot(labels!, V), tf.logSoftmax(logits)), -1));
    const loss = tf.div(tf.sum(tf.mul(xent, weights!)), tf.sum(weights!)) as Tensor;
    return [{ total_loss: [loss, tf.sum(weights!)] }, {}] as [WeightedScalars, {}];
  }
}

test('loss and gradients are those of PyTorch', () => {
  const { temperature, alpha, distillation } = recorded.distillation;
  const given = { studentTpl: GivenLogits.config(), teacherTpl: GivenLogits.config() };
  const model = build(DistillationModel.config({ ...given, temperature, alpha }));
  expectRecorded(recorded.distillation, (inputs) => model.fprop(inputs)[0], {
    distillation_loss: distillation,
  });
});

test('features are outputs of layers, and those of the student are projected', () => {
  const model = distilled({ features, alpha: 1, featureWeight: 3 });
  const theta = randomTheta(model, 3, 0.8);
  const seen = (network: string, layer: string, tpl: ReturnType<typeof lm>) => {
    const own = build(tpl);
    const stack = [...own.children.values()][0]!.children.get('transformer')!;
    const block = stack.children.get(layer)! as BaseLayer & { fprop(...args: unknown[]): Tensor };
    let output: Tensor | undefined;
    const given = Object.fromEntries(
      Object.entries(theta).map(([path, value]) => [path.replace(`${network}/`, ''), value]),
    );
    const { fprop } = block;
    Object.assign(block, { fprop: (...args: unknown[]) => (output = fprop.apply(block, args)) });
    run(given, () => own.computePredictions(batch));
    return output!;
  };
  const [h, t] = [seen('student', 'x_layers_0', lm(4, 1)), seen('teacher', 'x_layers_1', lm(6, 2))];
  const projected = tf.dot(tf.reshape(h, [B * T, 4]), theta['feature_projection_0/w']!);
  const error = [...tf.mean(tf.square(tf.sub(projected, tf.reshape(t, [B * T, 6]))), -1).dataSync()];
  const weights = batch.weights.dataSync();
  const expected = error.reduce((sum, value, i) => sum + value * weights[i]!, 0) / 5.5;
  const [metrics] = run(theta, () => model.fprop(batch));
  expectClose(metrics.feature_loss![0], [expected]);
  const value = (name: string) => metrics[name]![0].dataSync()[0]!;
  expect(value('total_loss')).toBeCloseTo(value('distillation_loss') + 3 * value('feature_loss'), 4);
  expect(Object.keys(metrics)).toEqual([
    'total_loss',
    'avg_xent',
    'aux_loss',
    'log_pplx',
    'fraction_of_correct_next_step_preds',
    'num_predictions',
    'student_loss',
    'distillation_loss',
    'agreement',
    'feature_loss',
  ]);
});

test('the gradient is the slope of the loss; the teacher is frozen', () => {
  const model = distilled({ features });
  const all = randomTheta(model, 5, 0.6);
  const isTeachers = (path: string) => path.startsWith('teacher/');
  const of = (teachers: boolean) =>
    Object.fromEntries(Object.entries(all).filter(([path]) => isTeachers(path) === teachers));
  checkSlope(
    (moved) => run({ ...of(true), ...moved }, () => model.fprop(batch)[0].total_loss![0]),
    of(false),
  );
  for (const { path, collections } of listVariables(model))
    expect(collections.includes('FROZEN'), path).toBe(isTeachers(path));
});

test('the student decodes; a model without tokens does not', () => {
  const model = distilled();
  expect(isDecodable(model)).toBe(true);
  expect(model.vocabSize).toBe(V);
  expect(Object.keys(model.initialDecodeState(2, T))[0]).toMatch(/^student\/lm\/transformer\//);
  expect(model.readIds).toEqual([{ path: 'ids', count: V, field: 'studentTpl.lmTpl.vocabSize' }]);
  const given = { studentTpl: GivenLogits.config(), teacherTpl: GivenLogits.config() };
  expect(isDecodable(build(DistillationModel.config(given)))).toBe(false);
});

test('a layer that there is not, and one that a layer above repeats, are named', () => {
  const pair = features[0]!;
  expect(() => distilled({ features: [{ ...pair, teacher: 'lm/transformer/x_layers_2' }] })).toThrow(
    "model (DistillationModel): features: the teacher has no layer 'lm/transformer/x_layers_2'. Did you mean " +
      "'lm/transformer/x_layers_0'?",
  );
});
