/** @file Heads that predict tokens further ahead: their targets, their loss, and the plain model besides. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  type AuxLoss,
  listVariables,
  MultiTokenPredictionLm,
  StackedTransformer,
  StackedTransformerRepeated,
  TransformerLm,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run } from '../helpers.js';

const [B, T, D, V] = [2, 5, 4, 7];
const stackedTransformerTpl = () => StackedTransformer.config({ numLayers: 2, hiddenDims: 5, numHeads: 2 });
const config = (values: Parameters<typeof MultiTokenPredictionLm.config>[0] = {}) =>
  MultiTokenPredictionLm.config({
    ...{ vocabSize: V, modelDims: D, numPredictionDepths: 2, mtpLossWeight: 0.5 },
    stackedTransformerTpl: stackedTransformerTpl(),
    ...values,
  });
const tokens = [3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 0, 2];
const ids = ints([...tokens.slice(0, 5), ...tokens.slice(6, 11)], [B, T]);
const labels = {
  classIds: ints([...tokens.slice(1, 6), ...tokens.slice(7, 12)], [B, T]),
  classWeights: tf.tensor2d([1, 1, 1, 1, 1, 1, 1, 1, 1, 0], [B, T]) as Tensor,
};

test('depth k reads the token k ahead, and predicts the one behind it', () => {
  const model = build(config());
  const theta = randomTheta(model);
  const auxLosses: AuxLoss[] = [];
  const output = run(theta, () => model.fprop({ ids }, labels), { auxLosses });
  expect(auxLosses.map(({ name, weight }) => `${name} ${weight}`)).toEqual([
    'mtp_1_xent 0.25',
    'mtp_2_xent 0.25',
  ]);
  const values = auxLosses.map(({ value }) => value.dataSync()[0]!);
  const main = output.avgXent.dataSync()[0]!;
  expect(output.totalLoss.dataSync()[0]).toBeCloseTo(main + 0.25 * (values[0]! + values[1]!), 5);
  // A target changes the losses of the depths that predict it: the label of place 2 is that of depths 0, 1 and 2.
  const losses = (at: number) => {
    const changed = Int32Array.from(labels.classIds.dataSync());
    changed[at] = (changed[at]! + 1) % V;
    const given: AuxLoss[] = [];
    const other = { ...labels, classIds: ints([...changed], [B, T]) };
    const { avgXent } = run(theta, () => model.fprop({ ids }, other), { auxLosses: given });
    return [avgXent, ...given.map(({ value }) => value)].map(
      (x, i) => x.dataSync()[0] !== [main, ...values][i],
    );
  };
  expect([0, 1, 2, 3, 4].map(losses)).toEqual([
    [true, false, false],
    [true, true, false],
    [true, true, true],
    [true, true, true],
    [true, true, true],
  ]);
  // Its weight is 0.
  expect(losses(9)).toEqual([false, false, false]);
});

test('targets of another sequence of a packed row do not count', () => {
  const model = build(config({ packedInput: true, numPredictionDepths: 1 }));
  const theta = randomTheta(model);
  const loss = (segmentIds: number[], weights: number[]) => {
    const auxLosses: AuxLoss[] = [];
    const inputs = {
      ids: tf.slice(ids, 0, [1, T]),
      segmentIds: ints(segmentIds, [1, T]),
      segmentPos: ints([0, 1, 2, 0, 1], [1, T]),
    };
    const classWeights = tf.tensor2d([weights]) as Tensor;
    run(theta, () => model.fprop(inputs, { classIds: tf.slice(labels.classIds, 0, [1, T]), classWeights }), {
      auxLosses,
    });
    return auxLosses[0]!.value.dataSync()[0]!;
  };
  // Places 0, 1 and 3 have a target ahead in their own sequence, that of places 1, 2 and 4.
  expect(loss([1, 1, 1, 2, 2], [1, 1, 1, 1, 1])).toBeCloseTo(loss([1, 1, 1, 2, 2], [1, 1, 1, 0, 1]), 6);
});

test('evaluation and logits are the plain model', () => {
  const model = build(config());
  const theta = randomTheta(model);
  const plain = build(
    TransformerLm.config({ vocabSize: V, modelDims: D, stackedTransformerTpl: stackedTransformerTpl() }),
  );
  const auxLosses: AuxLoss[] = [];
  const output = run(theta, () => model.fprop({ ids }, labels), { doEval: true, auxLosses });
  expect(auxLosses).toEqual([]);
  expectClose(output.logits, run(theta, () => plain.logits({ ids })).dataSync());
  const own = listVariables(model).filter(
    ({ path }) => path.startsWith('mtp_0/') && !path.includes('transformer'),
  );
  expect(own.map(({ path, shape }) => `${path} [${shape}]`)).toEqual([
    'mtp_0/hnorm/scale [4]',
    'mtp_0/enorm/scale [4]',
    'mtp_0/eh_proj/w [8,4]',
    'mtp_0/final_ln/scale [4]',
    'mtp_0/final_ln/bias [4]',
  ]);
});

test('gradients, and stacks that have no last layer', () => {
  const model = build(config({ numPredictionDepths: 1 }));
  checkGradients(model, [], () => model.fprop({ ids }, labels).totalLoss, { probes: 1 });
  const repeated = StackedTransformerRepeated.config({ xTimes: 2, hiddenDims: 5 });
  expect(() => build(config({ stackedTransformerTpl: repeated }))).toThrow(
    'stackedTransformerTpl is a StackedTransformerRepeated: set mtpHeadTpl.stackedTransformerTpl to a StackedTransformer.',
  );
  expect(() => build(config({ modelType: 'bidirectional' }))).toThrow(
    "modelType is 'bidirectional': expected 'causal'.",
  );
});
