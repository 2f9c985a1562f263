/** @file LanguageModelDPO: PyTorch's losses, the frozen reference, pairs of padding, gradients. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, derive } from '../../src/hparams/index.js';
import { listVariables, WeightCollection } from '../../src/layers/index.js';
import { Adam, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel, LanguageModelDPO } from '../../src/models/index.js';
import { checkGradients, expectClose, initialTheta, ints, randomTheta, run } from '../layers/helpers.js';
import { expectRecorded, recorded } from './recordedRecipes.js';

const [B, T, V] = [3, 4, 7];
const mdl = (values = {}) =>
  gpt2Lm({ vocabSize: V, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: T, ...values });

const half = (ids: number[], labels: number[], weights: number[]) => ({
  ids: ints(ids, [B, T]),
  labels: ints(labels, [B, T]),
  weights: tf.tensor2d(weights, [B, T]) as Tensor,
  paddings: tf.zeros([B, T]) as Tensor,
});
/** Two pairs, and a row of padding. */
const pairs = {
  chosen: half(
    [0, 3, 1, 4, 0, 2, 5, 6, 0, 0, 0, 0],
    [3, 1, 4, 2, 2, 5, 6, 1, 0, 0, 0, 0],
    [0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0],
  ),
  rejected: half(
    [0, 3, 1, 5, 0, 2, 3, 3, 0, 0, 0, 0],
    [3, 1, 5, 6, 2, 3, 3, 0, 0, 0, 0, 0],
    [0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0],
  ),
};
const batch = pairs as unknown as Record<string, Tensor>;

test('loss, ranking, margin and gradients are those of PyTorch', () => {
  const model = build(LanguageModelDPO.config({ mdl: mdl(), beta: recorded.dpo.beta }));
  const whole = { weights: tf.ones([5, 2]) as Tensor };
  const given = { chosen: whole, rejected: whole } as unknown as Record<string, Tensor>;
  const { accuracy, margin } = recorded.dpo;
  expectRecorded(
    recorded.dpo,
    ({ chosen, rejected, refChosen, refRejected }) =>
      model.computeLoss(
        {
          chosen: chosen!,
          rejected: rejected!,
          refChosen: refChosen!,
          refRejected: refRejected!,
          auxLoss: null,
        },
        given,
      )[0],
    { ranking_accuracy: accuracy, delta_r_hat: margin },
  );
});

test('log-probabilities are those of a language model, and rows of padding do not count', () => {
  const model = build(LanguageModelDPO.config({ mdl: mdl() }));
  const theta = randomTheta(model, 3, 0.8);
  const lm = build(LanguageModel.config({ lmTpl: mdl() }));
  const under = (network: string) => {
    const own = Object.fromEntries(
      Object.entries(theta).flatMap(([path, value]) =>
        path.startsWith(`${network}/`) ? [[path.replace(network, 'lm'), value]] : [],
      ),
    );
    const score = (arrays: Record<string, Tensor>) => [
      ...run(own, () => lm.fprop(arrays)[1].scores!)
        .dataSync()
        .slice(0, 2),
    ];
    return { chosen: score(pairs.chosen), rejected: score(pairs.rejected) };
  };
  const summaries: Record<string, Tensor> = {};
  const [metrics, { delta_r_hat: delta }] = run(theta, () => model.fprop(batch), { summaries });
  const [policy, reference] = [under('mdl'), under('ref_mdl')];
  const margins = [0, 1].map(
    (i) => 0.1 * (policy.chosen[i]! - reference.chosen[i]! - (policy.rejected[i]! - reference.rejected[i]!)),
  );
  expectClose(tf.slice(delta!, [0], [2]), margins);
  const [loss, weight] = metrics.total_loss!;
  expectClose(loss, [(Math.log1p(Math.exp(-margins[0]!)) + Math.log1p(Math.exp(-margins[1]!))) / 2]);
  expectClose(weight, [2]);
  const mean = (values: number[]) => (values[0]! + values[1]!) / 2;
  expectClose(summaries['dpo/y_w_pi_log_p_scalar']!, [mean(policy.chosen)]);
  expectClose(summaries['dpo/y_l_ref_log_p_scalar']!, [mean(reference.rejected)]);
  expectClose(summaries['dpo/delta_r_hat_std_scalar']!, [Math.abs(margins[0]! - margins[1]!) / 2]);
  expect(Object.keys(summaries)).toEqual([
    'dpo/y_w_ref_log_p_scalar',
    'dpo/y_w_pi_log_p_scalar',
    'dpo/y_l_ref_log_p_scalar',
    'dpo/y_l_pi_log_p_scalar',
    'dpo/r_hat_y_w_scalar',
    'dpo/r_hat_y_w_std_scalar',
    'dpo/r_hat_y_l_scalar',
    'dpo/r_hat_y_l_std_scalar',
    'dpo/delta_r_hat_scalar',
    'dpo/delta_r_hat_std_scalar',
    'dpo/dpo_loss_scalar',
  ]);
});

test('the reference is frozen: a copy of the same config, without dropout, gradients or a learner’s slots', () => {
  const model = build(LanguageModelDPO.config({ mdl: mdl({ dropoutProb: 0.5 }) }));
  const variables = listVariables(model);
  const [reference, policy] = ['ref_mdl', 'mdl'].map((name) =>
    variables.filter(({ path }) => path.startsWith(`${name}/`)),
  );
  expect(reference!.map(({ path }) => path.replace('ref_mdl', 'mdl'))).toEqual(
    policy!.map(({ path }) => path),
  );
  const isFrozen = ({ collections }: (typeof variables)[0]) => collections.includes(WeightCollection.FROZEN);
  expect(reference!.every(isFrozen)).toBe(true);
  expect(policy!.some(isFrozen)).toBe(false);
  const learner = build(Learner.config({ optimizer: Adam.config({ learningRate: 1 }) }));
  const groups = new Set(reference!.map((variable) => learner.groupOf(variable)));
  expect([...groups]).toEqual(['frozen']);
  expect(reference!.some((variable) => learner.isTrainable(variable))).toBe(false);

  const theta = initialTheta(model, 4);
  const passes = [1, 2].map((seed) =>
    run(theta, () => model.computePredictions(batch), { prngKey: ints([seed, 0], [2]) }),
  );
  expect([...passes[0]!.refChosen.dataSync()]).toEqual([...passes[1]!.refChosen.dataSync()]);
  expect([...passes[0]!.chosen.dataSync()]).not.toEqual([...passes[1]!.chosen.dataSync()]);
});

test('gradients by finite differences; none reaches the reference', () => {
  const model = build(LanguageModelDPO.config({ mdl: mdl(), beta: 0.5 }));
  const all = randomTheta(model, 5, 0.6);
  const of = (network: string) =>
    Object.fromEntries(Object.entries(all).filter(([path]) => path.startsWith(`${network}/`)));
  checkGradients(model, [], () => model.fprop(batch)[0].total_loss![0], {
    ...{ probes: 2, theta: of('mdl'), state: of('ref_mdl') },
  });
  const path = 'ref_mdl/softmax/w';
  const grad = tf.grad((table: Tensor) =>
    run({ ...all, [path]: table }, () => model.fprop(batch)[0].total_loss![0]),
  )(all[path]!);
  expect(Math.max(...grad.dataSync().map(Math.abs))).toBe(0);
});

test('what does not fit is said', () => {
  const packed = derive(mdl(), (p) => void (p.packedInput = true));
  expect(() => build(LanguageModelDPO.config({ mdl: packed }))).toThrow(
    'model (LanguageModelDPO): mdl.packedInput is set, and a row is one prompt with one answer: set it to false.',
  );
  const chunked = derive(mdl(), (p) => void (p.softmaxTpl.chunkSize = 4));
  expect(() => build(LanguageModelDPO.config({ mdl: chunked }))).toThrow(
    'model (LanguageModelDPO): mdl.softmaxTpl.chunkSize gives no gradient of the loss of one sequence: set it to 0.',
  );
  const shared = derive(mdl(), (p) => void (p.softmaxTpl.sharedWeightLayerId = 'table'));
  expect(() => build(LanguageModelDPO.config({ mdl: shared }))).toThrow(
    "mdl (TransformerLm): child 'softmax' has sharedWeightLayerId 'table' like table/cld, and one of the two is frozen; give " +
      'it another id.',
  );
  const model = build(LanguageModelDPO.config({ mdl: mdl() }));
  const other = { ...pairs, rejected: { ...pairs.rejected, ids: ints([0, 1, 2], [B, 1]) } };
  expect(() => run(initialTheta(model), () => model.fprop(other as unknown as typeof batch))).toThrow(
    'model (LanguageModelDPO): chosen.ids is [3, 4] and rejected.ids [3, 1]; expected equal shapes.',
  );
  const { rejected: _, ...half } = pairs;
  expect(() => run(initialTheta(model), () => model.fprop(half as unknown as typeof batch))).toThrow(
    "model (LanguageModelDPO): the batch has no 'rejected.ids'. It has: chosen.ids, chosen.labels, chosen.weights, chosen.paddings.",
  );
});
