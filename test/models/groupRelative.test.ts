/** @file LanguageModelGRPO: PyTorch's losses, padding, gradients, a policy without a reference. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { listVariables } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModelGRPO } from '../../src/models/index.js';
import { checkSlope, expectClose, ints, randomTheta, run, tensor } from '../layers/helpers.js';
import { expectRecorded, recorded } from './recordedRecipes.js';

const [B, T, V] = [3, 4, 7];
const mdl = gpt2Lm({ vocabSize: V, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: T });

/** Two answers, and a row of padding whose values are anything. */
const batch = {
  ids: ints([0, 3, 1, 4, 0, 2, 5, 6, 0, 0, 0, 0], [B, T]),
  labels: ints([3, 1, 4, 2, 2, 5, 6, 1, 0, 0, 0, 0], [B, T]),
  weights: tf.tensor2d([0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0], [B, T]) as Tensor,
  paddings: tf.zeros([B, T]) as Tensor,
  oldLogProbs: tf.tensor2d([9, -2, -2.1, -1.8, 9, -1.9, -2.2, NaN, NaN, 99, 99, 99], [B, T]) as Tensor,
  advantages: tf.tensor1d([1.5, -0.5, NaN]) as Tensor,
  rewards: tf.tensor1d([2, 1, NaN]) as Tensor,
};

test('loss, divergence and gradients are those of PyTorch', () => {
  const { beta, epsilon, kl } = recorded.grpo;
  const model = build(LanguageModelGRPO.config({ mdl, beta, clipEpsilon: epsilon }));
  expectRecorded(
    recorded.grpo,
    ({ policy, reference, oldLogProbs, advantages, weights }) =>
      model.computeLoss(
        { policy: policy!, reference: reference!, auxLoss: null },
        { oldLogProbs: oldLogProbs!, advantages: advantages!, weights: weights!, rewards: advantages! },
      )[0],
    { kl },
  );
});

test('answers count alike, and neither padding nor prompts count', () => {
  const model = build(LanguageModelGRPO.config({ mdl }));
  const [metrics, perExample] = run(randomTheta(model, 3, 0.8), () => model.fprop(batch));
  expect(Object.keys(metrics)).toEqual(['total_loss', 'reward', 'kl', 'clip_fraction', 'answer_length']);
  for (const [value, weight] of Object.values(metrics)) {
    expect(Number.isFinite(value.dataSync()[0])).toBe(true);
    expectClose(weight, [2]);
  }
  expectClose(metrics.reward![0], [1.5]);
  expectClose(metrics.answer_length![0], [2.5]);
  expect(Object.keys(perExample)).toEqual(['rewards']);
});

test('the gradient is the slope of the loss, of ratios near 1 and clipped ones', () => {
  const model = build(LanguageModelGRPO.config({ mdl, beta: 0.5 }));
  const all = randomTheta(model, 5, 0.6);
  const { policy } = run(all, () => model.computePredictions(batch));
  // Off the corner of the clip, which has no slope.
  const oldLogProbs = tf.add(policy, tf.mul(tensor([B, T], 8), 0.7)) as Tensor;
  const of = (network: string) =>
    Object.fromEntries(Object.entries(all).filter(([path]) => path.startsWith(`${network}/`)));
  const given = { ...batch, oldLogProbs, advantages: tf.tensor1d([1.5, -0.5, 0]) as Tensor };
  checkSlope(
    (moved) => run({ ...of('ref_mdl'), ...moved }, () => model.fprop(given)[0].total_loss![0]),
    of('mdl'),
  );
});

test('without β there is no reference', () => {
  const model = build(LanguageModelGRPO.config({ mdl, beta: 0 }));
  expect(listVariables(model).some(({ path }) => path.startsWith('ref_mdl'))).toBe(false);
  const [metrics] = run(randomTheta(model, 3, 0.8), () => model.fprop(batch));
  expect(Object.keys(metrics)).toEqual(['total_loss', 'reward', 'clip_fraction', 'answer_length']);
});
