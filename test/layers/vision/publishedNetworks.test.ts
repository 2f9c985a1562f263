/** @file Networks whose sizes and figures Pax and the papers publish. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { build, deepCopy, sub } from '../../../src/hparams/index.js';
import {
  BaseLayer,
  Conv2D,
  FeedForward,
  FullSoftmax,
  initVariables,
  listVariables,
  MobileNet,
  Pooling,
  ReLU,
  ResNet,
  ResNetBlock,
  resNet,
  Sequential,
  VanillaNet,
} from '../../../src/layers/index.js';
import { given } from '../engineComparison.js';
import { ints, run } from '../helpers.js';
import { parameterCount, sineInput, sineTheta } from '../sineFill.js';

test('the sizes of ResNets, as Pax publishes them', () => {
  const networks = ([18, 50, 101, 152] as const).map((depth) => build(resNet(depth)));
  expect(networks.map((network) => parameterCount(network))).toEqual([
    11_176_512, 23_508_032, 42_500_160, 58_143_808,
  ]);
  const network = networks[1]!;
  const classifier = build(FullSoftmax.config({ inputDims: 2048, numClasses: 1000 }));
  expect(parameterCount(network) + parameterCount(classifier)).toBe(25_557_032);
  expect(parameterCount(network, true)).toBe(53_120);
});

test('the sizes of ResNet-34 and MobileNetV2 are those of torchvision; half of the depths are rounded', () => {
  expect(parameterCount(build(resNet(34)))).toBe(21_797_672 - 513_000);
  expect(parameterCount(build(MobileNet.config({ numClasses: 1000 })))).toBe(3_504_872);
  expect(parameterCount(build(MobileNet.config({ multiplier: 0.5 })))).toBe(687_680);
});

test('a residual network begins as its shortcuts where zeroInitResidual is set', () => {
  const blockParams = ResNetBlock.config({ zeroInitResidual: true });
  const layer = build(
    ResNet.config({ strides: [1], channels: [16], blocks: [1], kernels: [3], blockParams }),
  );
  const gammas = listVariables(layer).filter(({ path }) => path.endsWith('gamma'));
  const initial = initVariables(layer, 1);
  expect(gammas.map(({ path }) => [path, initial.get(path)![0]])).toEqual([
    ['entryflow_conv/bn/gamma', 0],
    ['stage_0_block_0/body_0/bn/gamma', 0],
    ['stage_0_block_0/body_1/bn/gamma', 0],
    ['stage_0_block_0/body_2/bn/gamma', -1],
    ['stage_0_block_0/shortcut/bn/gamma', 0],
  ]);
});

test('a VanillaNet has the convolutions of a ResNet without norms and shortcuts', () => {
  const stages = { strides: [1, 2], channels: [16, 32], blocks: [1, 2], kernels: [3, 3] };
  const layer = build(VanillaNet.config(stages));
  expect(
    listVariables(layer)
      .filter(({ path }) => path.endsWith('w'))
      .map(({ shape }) => shape.join()),
  ).toEqual([
    ...['7,7,3,4', '1,1,4,4', '3,3,4,4', '1,1,4,16', '1,1,16,8', '3,3,8,8', '1,1,8,32'],
    ...['1,1,32,8', '3,3,8,8', '1,1,8,32'],
  ]);
  const outputs = run(sineTheta(layer), () => layer.fprop(sineInput([2, 16, 16, 3])));
  expect(outputs.shape).toEqual([2, 32]);
});

/** Pax's MnistExperiment: two convolutions with mean poolings, and two linear layers. */
class MnistNetwork extends BaseLayer.with({
  convTpl: sub(Conv2D, () => Conv2D.config({ filterShape: [3, 3, 1, 32], bias: true })),
  poolTpl: sub(Pooling, () => Pooling.config({ windowShape: [2, 2], poolingType: 'AVG' })),
}) {
  #features!: Sequential;
  #hidden!: FeedForward;
  #softmax!: FullSoftmax;

  protected override setup(): void {
    const { convTpl, poolTpl } = this.hp;
    const second = deepCopy(convTpl);
    second.filterShape = [3, 3, 32, 64];
    const layers = [convTpl, ReLU.config(), poolTpl, second, ReLU.config(), deepCopy(poolTpl)];
    this.#features = this.createChild('features', Sequential.config({ layers }));
    this.#hidden = this.createChild('hidden', FeedForward.config({ inputDims: 3136, outputDims: 256 }));
    this.#softmax = this.createChild('softmax', FullSoftmax.config({ inputDims: 256, numClasses: 10 }));
  }

  fprop(images: Tensor, labels: Tensor): { loss: Tensor; logits: Tensor } {
    const features = tf.reshape(this.#features.fprop(images), [images.shape[0]!, 3136]);
    const hidden = this.#hidden.fprop(features);
    const { avgXent, logits } = this.#softmax.fprop(hidden, tf.ones(labels.shape), labels);
    return { loss: avgXent, logits };
  }
}

test('the network of MnistExperiment gives the loss and gradient that Pax publishes', async () => {
  const layer = build(MnistNetwork.config());
  expect(parameterCount(layer)).toBe(824_458);
  const step = (theta: Record<string, Tensor>) => {
    const labels = ints([1, 3, 5, 7], [4]);
    const forward = (values: Record<string, Tensor>) => {
      const images = sineInput([4, 28, 28, 1]);
      const { loss, logits } = run(values, () => layer.fprop(images, labels), { doEval: true });
      return { value: loss, aux: { hits: tf.cast(tf.equal(tf.argMax(logits, 1), labels), 'float32') } };
    };
    const { value, aux, grads } = valueAndGrad(forward, theta);
    const squares = Object.values(grads).map((gradient) => tf.sum(tf.square(gradient)));
    return { loss: value, accuracy: tf.mean(aux.hits), gradientNorm: tf.sqrt(tf.addN(squares)) };
  };
  const theta = Object.fromEntries(
    Object.entries(sineTheta(layer)).map(([path, x]) => [path, given('float32', [...x.dataSync()], x.shape)]),
  );
  // Compiled: eager gradients of convolutions take seconds.
  const executable = await compile(step as never, theta as never, { engine: 'onnx', numThreads: 1 });
  const results = (await executable.run(theta as never)) as unknown as Record<string, HostTensor>;
  expect(results.loss!.data[0]).toBeCloseTo(2.291603, 5);
  expect(results.accuracy!.data[0]).toBe(0.25);
  expect(results.gradientNorm!.data[0]).toBeCloseTo(1.457427, 4);
  await executable.dispose();
});
