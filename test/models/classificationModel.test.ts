/** @file ClassificationModel: Pax's figures, metrics by hand, texts, bad labels. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { build, deepCopy, sub } from '../../src/hparams/index.js';
import {
  BaseLayer,
  Conv2D,
  FeedForward,
  FullSoftmax,
  Identity,
  Pooling,
  ReLU,
  Sequential,
  StackedTransformer,
  TrainablePositionalEmbedding,
  TransformerTextEncoder,
} from '../../src/layers/index.js';
import { ClassificationModel } from '../../src/models/index.js';
import { given } from '../layers/engineComparison.js';
import { expectClose, ints, randomTheta, run, tensor } from '../layers/helpers.js';
import { parameterCount, sineInput, sineTheta } from '../layers/sineFill.js';

test('the sizes of the ResNet-50 classifier that Pax publishes', () => {
  const model = build(
    ClassificationModel.config({ softmaxTpl: FullSoftmax.config({ inputDims: 2048, numClasses: 1000 }) }),
  );
  expect(parameterCount(model)).toBe(25_557_032);
  expect(parameterCount(model, true)).toBe(53_120);
});

/** The network of Pax's MnistExperiment: two convolutions with mean poolings, and a layer of 256. */
class MnistNetwork extends BaseLayer.with({
  convTpl: sub(Conv2D, () => Conv2D.config({ filterShape: [3, 3, 1, 32], bias: true })),
  poolTpl: sub(Pooling, () => Pooling.config({ windowShape: [2, 2], poolingType: 'AVG' })),
}) {
  #features!: Sequential;
  #hidden!: FeedForward;

  protected override setup(): void {
    const { convTpl, poolTpl } = this.hp;
    const second = deepCopy(convTpl);
    second.filterShape = [3, 3, 32, 64];
    const layers = [convTpl, ReLU.config(), poolTpl, second, ReLU.config(), deepCopy(poolTpl)];
    this.#features = this.createChild('features', Sequential.config({ layers }));
    this.#hidden = this.createChild('hidden', FeedForward.config({ inputDims: 3136, outputDims: 256 }));
  }

  fprop(images: Tensor): Tensor {
    return this.#hidden.fprop(tf.reshape(this.#features.fprop(images), [images.shape[0]!, 3136]));
  }
}

test('the loss and gradient of MnistExperiment that Pax publishes', async () => {
  const model = build(
    ClassificationModel.config({
      networkTpl: MnistNetwork.config(),
      softmaxTpl: FullSoftmax.config({ inputDims: 256, numClasses: 10 }),
      labelField: 'labels',
    }),
  );
  expect(parameterCount(model)).toBe(824_458);
  const step = (theta: Record<string, Tensor>) => {
    const forward = (values: Record<string, Tensor>) => {
      const batch = { image: sineInput([4, 28, 28, 1]), labels: ints([1, 3, 5, 7], [4]) };
      const [{ total_loss, accuracy, error }] = run(values, () => model.fprop(batch), { doEval: true });
      return { value: total_loss![0], aux: { accuracy: accuracy![0], error: error![0] } };
    };
    const { value, aux, grads } = valueAndGrad(forward, theta);
    const squares = Object.values(grads).map((gradient) => tf.sum(tf.square(gradient)));
    return { loss: value, ...aux, gradientNorm: tf.sqrt(tf.addN(squares)) };
  };
  const theta = Object.fromEntries(
    Object.entries(sineTheta(model)).map(([path, x]) => [path, given('float32', [...x.dataSync()], x.shape)]),
  );
  // Compiled: eager gradients of convolutions take seconds.
  const executable = await compile(step as never, theta as never, { engine: 'onnx', numThreads: 1 });
  const results = (await executable.run(theta as never)) as unknown as Record<string, HostTensor>;
  expect(results.loss!.data[0]).toBeCloseTo(2.291603, 5);
  expect(results.accuracy!.data[0]).toBe(0.25);
  expect(results.error!.data[0]).toBe(0.75);
  expect(results.gradientNorm!.data[0]).toBeCloseTo(1.457427, 4);
  await executable.dispose();
});

const [CLASSES, DIMS] = [7, 7];

/** The features are the inputs, and the logits the features: the softmax's weights are a unit matrix. */
const plain = () => {
  const networkTpl = FeedForward.config({
    inputDims: DIMS,
    outputDims: DIMS,
    activationTpl: Identity.config(),
  });
  const model = build(
    ClassificationModel.config({
      networkTpl,
      softmaxTpl: FullSoftmax.config({ inputDims: DIMS, numClasses: CLASSES }),
    }),
  );
  const unit = tf.eye(DIMS) as Tensor;
  const zeros = tf.zeros([DIMS]) as Tensor;
  const theta = {
    ...{ 'network/linear/w': unit, 'network/bias/b': zeros },
    ...{ 'softmax/logits_ffn/linear/w': unit, 'softmax/logits_ffn/bias/b': zeros },
  };
  return (batch: Record<string, Tensor>) => run(theta, () => model.fprop(batch));
};

test('metrics by hand: shares of classes, the 5 likeliest, padding of any kind', () => {
  const logits = [
    [3, 1, 0, 0.5, -1, -2, -3],
    [0, 1, 2, 3, 4, 5, 6],
    [2, 2.5, 0, 0, 0, 0, 0],
    [Number.NaN, 0, 0, 0, 0, 0, 0],
  ];
  const shares = [
    [1, 0, 0, 0, 0, 0, 0],
    [0, 1, 0, 0, 0, 0, 0],
    [0.75, 0.25, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0],
  ];
  const weights = [1, 1, 2, 0];
  const image = tf.tensor2d(logits) as Tensor;
  const [metrics, perExample] = plain()({
    image,
    label_probs: tf.tensor2d(shares) as Tensor,
    weights: tf.tensor1d(weights) as Tensor,
  });
  const xent = (row: number[], targets: number[]): number => {
    const norm = Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
    return targets.reduce((sum, share, i) => sum + share * (norm - row[i]!), 0);
  };
  const loss = [0, 1, 2].reduce((sum, b) => sum + weights[b]! * xent(logits[b]!, shares[b]!), 0) / 4;
  // Row 0 is right; of row 1, five classes are likelier than its label; of row 2 one is.
  const expected: Record<string, [number, number]> = {
    ...{ total_loss: [loss, 4], avg_xent: [loss, 4], num_predictions: [4, 1] },
    ...{ accuracy: [0.25, 4], error: [0.75, 4], acc5: [0.75, 4], error5: [0.25, 4] },
  };
  expect(Object.keys(metrics)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected)) expectClose(tf.stack([...metrics[name]!]), values);
  expect(Object.keys(perExample)).toEqual(['labels', 'scores', 'logits']);
  // Ids are shares of 1.
  const ids = ints([0, 1, 0, 0], [4]);
  const [byId] = plain()({ image, label_probs: ids, weights: tf.tensor1d([1, 1, 0, 0]) as Tensor });
  expectClose(byId.avg_xent![0], [(xent(logits[0]!, shares[0]!) + xent(logits[1]!, shares[1]!)) / 2]);
});

test('labels and weights of other shapes are said, with what is expected', () => {
  const image = tensor([2, DIMS]);
  const call = (label_probs: Tensor, weights?: Tensor) => () =>
    plain()({ image, label_probs, ...(weights && { weights }) });
  const expected = 'expected ids, int32 [2], or shares of softmaxTpl.numClasses classes, float32 [2, 7].';
  expect(call(tensor([2, 6]))).toThrow(
    `model (ClassificationModel): 'label_probs' is float32 [2, 6]: ${expected}`,
  );
  expect(call(tensor([2]))).toThrow(`'label_probs' is float32 [2]: ${expected}`);
  expect(call(ints([1, 2], [2]), tensor([2, 1]))).toThrow(
    "model (ClassificationModel): 'weights' is [2, 1]: expected a weight for each row, [2].",
  );
});

test.each(['mean', 'first', 'last', 'endOfText'] as const)(
  'padding of texts leaves no trace: %s',
  (pooling) => {
    const networkTpl = TransformerTextEncoder.config({
      ...{ vocabSize: 9, modelDims: 4, pooling, causal: pooling === 'last' },
      positionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: 6 }),
      stackedTransformerTpl: StackedTransformer.config({ numLayers: 1, hiddenDims: 5, numHeads: 2 }),
    });
    const model = build(
      ClassificationModel.config({
        ...{ networkTpl, inputField: 'ids', paddingsField: 'paddings' },
        softmaxTpl: FullSoftmax.config({ inputDims: 4, numClasses: 3 }),
      }),
    );
    const theta = randomTheta(model);
    const logits = (ids: number[], paddings: number[]): Tensor =>
      run(theta, () =>
        model.computePredictions({
          ids: ints(ids, [1, ids.length]),
          paddings: tf.tensor2d([paddings]) as Tensor,
          label_probs: ints([0], [1]),
        }),
      ).logits;
    const alone = logits([3, 1, 4], [0, 0, 0]);
    expectClose(logits([3, 1, 4, 7, 0], [0, 0, 0, 1, 1]), alone.dataSync());
    const other = logits([3, 1, 5], [0, 0, 0]);
    expect(tf.max(tf.abs(tf.sub(other, alone))).dataSync()[0]).toBeGreaterThan(1e-3);
    expect(model.readIds).toEqual([{ path: 'ids', count: 9, field: 'networkTpl.vocabSize' }]);
  },
);
