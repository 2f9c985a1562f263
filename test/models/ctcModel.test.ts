/** @file CtcModel: loss of sequences that fit their frames, greedy symbols, padding, bad labels. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf } from '../../src/compiler/index.js';
import { build, validate } from '../../src/hparams/index.js';
import {
  Conformer,
  ConformerEncoder,
  ctcGreedyIds,
  ctcLoss,
  FullSoftmax,
  listVariables,
  runInContext,
  StackingOverTime,
} from '../../src/layers/index.js';
import { CtcModel } from '../../src/models/index.js';
import { expectClose, ints, randomTheta, run, tensor } from '../layers/helpers.js';

const [B, T, D, K, N] = [3, 6, 3, 5, 2];
const config = () =>
  CtcModel.config({
    encoderTpl: ConformerEncoder.config({
      ...{ inputDims: D, modelDims: 4, numLayers: 1 },
      stackingTpl: StackingOverTime.config({ rightContext: 1, stride: 2 }),
      conformerTpl: Conformer.config({
        attenNumHeads: 2,
        kernelSize: 3,
        layerOrder: 'mhsa',
        ffnDimMultiplier: 1,
      }),
    }),
    softmaxTpl: FullSoftmax.config({ numClasses: K }),
    blankId: 4,
  });
const LABELS = [1, 2, 3, 0, 2, 2];
const batchOf = (extra: Record<string, Tensor> = {}): Record<string, Tensor> => ({
  inputs: tensor([B, T, D]),
  paddings: tf.tensor2d([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1], [B, T]),
  labels: ints(LABELS, [B, N]),
  labelPaddings: tf.tensor2d([0, 0, 0, 1, 0, 0], [B, N]),
  ...extra,
});

test('the loss is the mean over sequences that fit; repeated labels need a blank between', () => {
  const model = build(config());
  const theta = randomTheta(model);
  const batch = batchOf({ weights: tf.tensor1d([1, 3, 1]) as Tensor });
  const [{ logits, logitPaddings }, [metrics, perExample]] = run(theta, () => {
    const found = model.computePredictions(batch);
    return [found, model.computeLoss(found, batch)] as const;
  });
  expect(logits.shape).toEqual([B, T / 2, K]);
  expect([...logitPaddings.dataSync()]).toEqual([0, 0, 0, 0, 0, 1, 0, 0, 1]);
  const { labels, labelPaddings } = batch;
  const each = ctcLoss({ logits, logitPaddings, labels: labels!, labelPaddings }, { blankId: 4 }).dataSync();
  // 2 2 of row 2 needs three frames, and there are two.
  const loss = (each[0]! + 3 * each[1]!) / 4;
  const expected: Record<string, [number, number]> = {
    ...{ total_loss: [loss, 4], avg_ctc: [loss, 4], aligned_fraction: [4 / 5, 5], num_labels: [5, 1] },
  };
  expect(Object.keys(metrics)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected)) expectClose(tf.stack([...metrics[name]!]), values);
  expect(Object.keys(perExample)).toEqual(['labels', 'label_paddings', 'predicted_ids', 'scores']);
  expectClose(
    perExample.scores!,
    each.map((x) => -x),
  );
});

test('frames of padding change nothing', () => {
  const model = build(config());
  const theta = randomTheta(model);
  const lossOf = (inputs: Tensor, paddings: Tensor): Tensor =>
    run(theta, () => model.fprop(batchOf({ inputs, paddings }))[0].total_loss![0]);
  const whole = batchOf();
  const short = lossOf(whole.inputs!, whole.paddings!);
  const junk = tf.where(tf.expandDims(tf.greater(whole.paddings!, 0), -1), tf.scalar(1e3), whole.inputs!);
  const longer = [
    tf.concat([junk, tf.fill([B, 2, D], Number.NaN)], 1),
    tf.concat([whole.paddings!, tf.ones([B, 2])], 1),
  ] as const;
  expectClose(lossOf(longer[0] as Tensor, longer[1] as Tensor), short.dataSync(), 1e-4);
});

test('greedy symbols: runs are one symbol, blanks none, padding begins none', () => {
  const path = [2, 2, 0, 2, 1, 1, 0, 3, 3];
  const logits = tf.reshape(tf.oneHot(tf.tensor1d(path, 'int32'), 4), [1, 9, 4]) as Tensor;
  const paddings = tf.tensor2d([[0, 0, 0, 0, 0, 0, 0, 0, 1]]) as Tensor;
  expect([...ctcGreedyIds(logits, paddings).dataSync()]).toEqual([2, 0, 0, 2, 1, 0, 0, 3, 0]);
  // With blank 2, 0 is a symbol.
  expect([...ctcGreedyIds(logits, paddings, 2).dataSync()]).toEqual([2, 2, 0, 2, 1, 2, 0, 3, 2]);
});

test('a label that is no symbol is named with its place; a blank must be a symbol', async () => {
  const model = build(config());
  const labels = ints([1, 2, K, 0, 2, 2], [B, N]);
  const theta = randomTheta(model);
  const specs = Object.fromEntries(
    listVariables(model).map(({ path }) => [
      path,
      { data: theta[path]!.dataSync(), shape: theta[path]!.shape, dtype: 'float32' },
    ]),
  );
  const step = (given: { theta: Record<string, Tensor>; labels: Tensor }) =>
    runInContext(
      { theta: given.theta },
      () => model.fprop(batchOf({ labels: given.labels }))[0].total_loss![0],
    );
  const inputs = {
    theta: specs,
    labels: { data: labels.dataSync(), shape: [B, N], dtype: 'int32' },
  } as never;
  const executable = await compile(step as never, inputs, { engine: 'onnx', numThreads: 1 });
  await expect(executable.run(inputs) as Promise<HostTensor>).rejects.toThrow(
    /input 'labels', element \[1,0\]: 5 is not one of the 5 rows/,
  );
  await executable.dispose();
  expect(
    validate(Object.assign(config(), { blankId: K })).map((problem) =>
      String(problem).replace(/ \(at .*/, ''),
    ),
  ).toEqual(['blankId (CtcModel): expected an id below softmaxTpl.numClasses (5); blankId is 5']);
});
