/** @file Networks whose sizes and figures Pax and the papers publish. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  FullSoftmax,
  initVariables,
  listVariables,
  MobileNet,
  ResNet,
  ResNetBlock,
  resNet,
  VanillaNet,
} from '../../../src/layers/index.js';
import { run } from '../helpers.js';
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
