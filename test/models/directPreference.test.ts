/** @file Direct preference of language models and encoder-decoders: PyTorch's losses, the frozen reference, pairs of padding, gradients. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config, derive } from '../../src/hparams/index.js';
import {
  listVariables,
  SharedEmbeddingSoftmax,
  StackedTransformer,
  TransformerEncoderDecoder,
  WeightCollection,
} from '../../src/layers/index.js';
import { Adam, Learner } from '../../src/learners/index.js';
import {
  type BaseModel,
  gpt2Lm,
  LanguageModel,
  LanguageModelDPO,
  SequenceModel,
  SequenceModelDPO,
} from '../../src/models/index.js';
import { checkSlope, expectClose, initialTheta, ints, randomTheta, run, stateOf } from '../layers/helpers.js';
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

/** The encoder-decoder of pairs, and its batch: a source of each pair beside the same answers. */
const encoderDecoder = () => {
  const stack = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 5, numHeads: 2 });
  return TransformerEncoderDecoder.config({
    ...{ modelDims: 4, encoderStackedTransformerTpl: stack(), decoderStackedTransformerTpl: stack() },
    softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: V }),
  });
};
const src = {
  ids: ints([3, 1, 4, 2, 5, 0, 0, 0, 0], [B, 3]),
  paddings: tf.tensor2d([0, 0, 0, 0, 0, 1, 1, 1, 1], [B, 3]) as Tensor,
};
const sourced = { src, ...pairs } as unknown as Record<string, Tensor>;

/** Scores of two rows by a model without a reference, whose network has the values of `network` in `theta`. */
function scores(
  model: BaseModel,
  name: string,
  theta: Record<string, Tensor>,
  network: string,
  given: object,
): number[] {
  const own = Object.entries(theta).filter(([path]) => path.startsWith(`${network}/`));
  const values = Object.fromEntries(own.map(([path, value]) => [path.replace(network, name), value]));
  const [, { scores: found }] = run(values, () => model.fprop(given as Record<string, Tensor>));
  return [...found!.dataSync().slice(0, 2)];
}

test.each([
  {
    model: LanguageModelDPO.config({ mdl: mdl() }),
    plain: LanguageModel.config({ lmTpl: mdl() }),
    name: 'lm',
    given: batch,
    half: (arrays: object) => arrays,
  },
  {
    model: SequenceModelDPO.config({ mdl: encoderDecoder() }),
    plain: SequenceModel.config({ modelTpl: encoderDecoder() }),
    name: 'model',
    given: sourced,
    half: (tgt: object) => ({ src, tgt }),
  },
])('log-probabilities are those of $plain, and rows of padding do not count', (each) => {
  const model = build(each.model as Config<BaseModel>);
  const plain = build(each.plain as Config<BaseModel>);
  const theta = randomTheta(model, 3, 0.8);
  const under = (network: string) => {
    const [chosen, rejected] = (['chosen', 'rejected'] as const).map((half) =>
      scores(plain, each.name, theta, network, each.half(pairs[half])),
    );
    return { chosen: chosen!, rejected: rejected! };
  };
  const summaries: Record<string, Tensor> = {};
  const [metrics, { delta_r_hat: delta }] = run(theta, () => model.fprop(each.given), { summaries });
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

test.each([
  ['LanguageModelDPO', LanguageModelDPO.config({ mdl: mdl(), beta: 0.5 }), batch],
  ['SequenceModelDPO', SequenceModelDPO.config({ mdl: encoderDecoder(), beta: 0.5 }), sourced],
] as [string, Config<BaseModel>, typeof batch][])(
  '%s: the gradient is the slope of the loss; none reaches the reference',
  (_, config, given) => {
    const model = build(config);
    const all = randomTheta(model, 5, 0.6);
    const of = (network: string) =>
      Object.fromEntries(Object.entries(all).filter(([path]) => path.startsWith(`${network}/`)));
    checkSlope(
      (moved) => run({ ...of('ref_mdl'), ...moved }, () => model.fprop(given)[0].total_loss![0]),
      of('mdl'),
    );
    const path = listVariables(model).find((variable) => variable.path.startsWith('ref_mdl/softmax/'))!.path;
    const grad = tf.grad((table: Tensor) =>
      run({ ...all, [path]: table }, () => model.fprop(given)[0].total_loss![0]),
    )(all[path]!);
    expect(Math.max(...grad.dataSync().map(Math.abs))).toBe(0);
  },
);

test('an encoder-decoder decodes as its network that learns does alone', () => {
  const model = build(SequenceModelDPO.config({ mdl: encoderDecoder() }));
  const theta = randomTheta(model, 3, 0.8);
  const values = Object.fromEntries(
    Object.entries(theta).map(([path, value]) => [path.replace(/^mdl/, 'model'), value]),
  );
  const plain = build(SequenceModel.config({ modelTpl: encoderDecoder() }));
  const [own, expected] = ([model, plain] as const).map((each, i) => {
    const prompt = { 'src.ids': src.ids, 'src.paddings': src.paddings };
    const state = stateOf(each.initialDecodeState(B, T, prompt as never));
    expect(Object.keys(state).some((path) => path.startsWith('ref_mdl'))).toBe(false);
    return run(
      i === 0 ? theta : values,
      () => {
        each.begin!(prompt);
        return each.extendStep(ints([1, 2, 3], [B]), { timeStep: tf.scalar(0, 'int32') as Tensor });
      },
      { decodeState: state },
    );
  });
  expect([...own!.dataSync()]).toEqual([...expected!.dataSync()]);
  expect({ ...model.nested, names: model.promptNames }).toEqual({
    ...{ source: 'src', target: 'tgt', names: ['src.ids', 'src.paddings'] },
  });
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
