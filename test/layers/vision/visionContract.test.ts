/** @file Blocks of vision networks by the contract of layers, and what they refuse. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseLayer,
  ConvBNAct,
  ConvNeXtBlock,
  GroupNorm,
  InvertedResidualBlock,
  imageToPatch,
  MixerBlock,
  MobileNet,
  Pooling,
  ResNet,
  ResNetBasicBlock,
  ResNetBlock,
  resizeGrid,
  StackedTransformer,
  Swish,
  TrainablePositionalEmbedding,
  Transformer,
  TransformerFeedForward,
  UNet,
  UNetDownBlock,
  UNetUpBlock,
  VanillaBlock,
  VisionTransformer,
  VitEntryLayers,
  VitExitLayers,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';

type Plain = BaseLayer & { fprop(x: Tensor): Tensor };
const plain = (title: string, config: Config<Plain>, shape: readonly number[], doEval = false) =>
  layerCase({ title, config, doEval, inputs: { x: floats(shape) }, call: (layer, { x }) => layer.fprop(x!) });
/** A network, of each of whose many variables one element is probed. */
const network = (title: string, config: Config<Plain>, shape: readonly number[]) => ({
  ...plain(title, config, shape),
  probes: 1,
});

// Activations without a kink, at which finite differences see neither slope.
const activationTpl = () => Swish.config();
const smooth = () =>
  ConvBNAct.config({ batchNormTpl: GroupNorm.config({ numGroups: 2 }), activationTpl: activationTpl() });

const mean = Pooling.config({ windowShape: [2, 2], poolingType: 'AVG' });

const stack = () =>
  StackedTransformer.config({
    ...{ numLayers: 1, modelDims: 4, hiddenDims: 4, numHeads: 2 },
    transformerLayerParamsTpl: Transformer.config({
      trFflayerTpl: TransformerFeedForward.config({ activationTpl: activationTpl() }),
    }),
  });

const entry = (values: object = {}) =>
  VitEntryLayers.config({
    ...{ posEmbShapes: [2, 2], patchSize: 2, inputDims: 8, outputDims: 4 },
    posEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: 4 }),
    ...values,
  });

checkLayers('vision', [
  network(
    'ResNetBlock',
    ResNetBlock.config({ inputDim: 4, outputDim: 8, stride: 2, activationTpl: activationTpl() }),
    [2, 4, 4, 4],
  ),
  plain(
    'ResNetBasicBlock',
    ResNetBasicBlock.config({ inputDim: 4, outputDim: 4, activationTpl: activationTpl() }),
    [2, 3, 3, 4],
    true,
  ),
  plain(
    'InvertedResidualBlock',
    InvertedResidualBlock.config({ inputDim: 4, outputDim: 4, expansion: 2, activationTpl: activationTpl() }),
    [2, 3, 3, 4],
  ),
  plain('VanillaBlock', VanillaBlock.config({ inputDim: 3, outputDim: 8, stride: 2 }), [2, 4, 4, 3]),
  plain(
    'ConvNeXtBlock',
    ConvNeXtBlock.config({ inputDim: 8, kernelSize: 3, layerScaleInit: 0.5 }),
    [2, 4, 3, 8],
  ),
  plain(
    'MixerBlock',
    MixerBlock.config({ numTokens: 3, inputDims: 4, tokensMlpDims: 5, channelsMlpDims: 6 }),
    [2, 3, 4],
  ),
  network(
    'UNet',
    UNet.config({
      ...{ inputDim: 2, channels: [4, 8] },
      downBlockTpl: UNetDownBlock.config({ convParams: smooth(), poolTpl: mean }),
      upBlockTpl: UNetUpBlock.config({ convParams: smooth() }),
    }),
    [2, 4, 4, 2],
  ),
  network(
    'VisionTransformer',
    VisionTransformer.config({
      entryLayersTpl: entry({ prependClsTokens: 1 }),
      transformerLayersTpl: stack(),
      exitLayersTpl: VitExitLayers.config({ hiddenDim: 4, outputDim: 3 }),
    }),
    [2, 4, 6, 2],
  ),
]);

test('a patch holds its rows, and patches stand row by row', () => {
  const images = tf.reshape(tf.range(0, 2 * 4 * 6), [2, 4, 6, 1]) as Tensor;
  const patches = imageToPatch(images, 2);
  expect(patches.shape).toEqual([2, 6, 4]);
  expect([...tf.slice(patches, [0, 0, 0], [1, 4, 4]).dataSync()]).toEqual([
    ...[0, 1, 6, 7],
    ...[2, 3, 8, 9],
    ...[4, 5, 10, 11],
    ...[12, 13, 18, 19],
  ]);
});

// jax.image.resize(x, …, method='bilinear') of [[0, 1, 2], [10, 11, 12]].
test.each([
  [
    [2, 6],
    [0, 0.25, 0.75, 1.25, 1.75, 2, 10, 10.25, 10.75, 11.25, 11.75, 12],
  ],
  [
    [1, 3],
    [5, 6, 7],
  ],
  [
    [2, 2],
    [0.375, 1.625, 10.375, 11.625],
  ],
] as const)('position embeddings of a grid of 2x3 for one of %j', (to, expected) => {
  const embeddings = tf.tensor2d([0, 1, 2, 10, 11, 12], [6, 1]) as Tensor;
  expectClose(resizeGrid(embeddings, [2, 3], to), expected, 1e-5);
});

test('class tokens stand before and behind the patches; patches may be given themselves', () => {
  const layer = build(entry({ prependClsTokens: 1, appendClsTokens: 2 }));
  const theta = randomTheta(layer);
  const images = tensor([2, 4, 4, 2]);
  const call = (x: Tensor): Tensor => run(theta, () => layer.fprop(x));
  const tokens = call(images);
  expect(tokens.shape).toEqual([2, 7, 4]);
  const at = (begin: number, size: number): Float32Array =>
    tf.slice(tokens, [1, begin, 0], [1, size, 4]).dataSync() as Float32Array;
  expect(at(0, 1)).toEqual(theta.prepend_cls_embs!.dataSync());
  expect(at(5, 2)).toEqual(theta.append_cls_embs!.dataSync());
  expectClose(call(imageToPatch(images, 2)), tokens.dataSync());
});

test('class tokens have positions of their own, which an image of another size leaves as they are', () => {
  const posEmbTpl = TrainablePositionalEmbedding.config({ maxSeqLength: 6 });
  const layer = build(
    entry({ ...{ prependClsTokens: 1, appendClsTokens: 1, posEmbOfClsTokens: true }, posEmbTpl }),
  );
  const theta = randomTheta(layer);
  const zeros = {
    ...theta,
    'patch_projection/linear/w': tf.zeros([8, 4]) as Tensor,
    'patch_projection/bias/b': tf.zeros([4]) as Tensor,
  };
  const table = theta['pos_emb/emb_var']!;
  const row = (i: number, x = table): Tensor => tf.slice(x, [i, 0], [1, 4]) as Tensor;
  for (const side of [2, 4]) {
    const tokens = run(zeros, () => layer.fprop(tensor([1, 2 * side, 2 * side, 2])));
    const at = (i: number): Tensor => row(i, tf.reshape(tokens, [side ** 2 + 2, 4]) as Tensor);
    const classes = [theta.prepend_cls_embs!, theta.append_cls_embs!].map((x) => tf.reshape(x, [1, 4]));
    expectClose(at(0), tf.add(row(0), classes[0]!).dataSync());
    expectClose(at(side ** 2 + 1), tf.add(row(5), classes[1]!).dataSync());
    // Cells in the corners of a finer grid have the corners' embeddings.
    expectClose(at(1), row(1).dataSync());
    expectClose(at(side ** 2), row(4).dataSync());
  }
});

test('padded patches change no other', () => {
  const config = VisionTransformer.config({
    entryLayersTpl: null,
    transformerLayersTpl: stack(),
    exitLayersTpl: null,
  });
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor([1, 3, 4]);
  const padded = tf.concat([x, tf.fill([1, 1, 4], Number.NaN)], 1) as Tensor;
  const outputs = run(theta, () => layer.fprop(padded, tf.tensor2d([0, 0, 0, 1], [1, 4])));
  expectClose(tf.slice(outputs, [0, 0, 0], [1, 3, 4]), run(theta, () => layer.fprop(x)).dataSync());
});

const applied = (config: Config<Plain>, shape: number[]) => (): Tensor => {
  const layer = build(config);
  return run(randomTheta(layer), () => layer.fprop(tensor(shape)));
};

test.each([
  [
    applied(entry(), [1, 4, 4, 3]),
    'model (VitEntryLayers): inputs [1, 4, 4, 3] do not fit inputDims 8: expected images [B, H, W, 2] or patches [B, N, 8].',
  ],
  [applied(entry(), [1, 5, 4, 2]), 'images of 5x4 are no multiple of the patchSize 2.'],
  [
    () => build(VitExitLayers.config({ hiddenDim: 4 })),
    'model (VitExitLayers): outputFcTanh is set, and outputDim is 0.',
  ],
  [
    applied(
      MixerBlock.config({ numTokens: 3, inputDims: 4, tokensMlpDims: 5, channelsMlpDims: 6 }),
      [2, 4, 4],
    ),
    'model (MixerBlock): inputs [2, 4, 4]: expected [B, 3, 4], numTokens and inputDims.',
  ],
  [
    applied(UNet.config({ inputDim: 1, channels: [8, 8, 8] }), [1, 8, 6, 1]),
    'model (UNet): images of 8x6 are no multiple of 4, by 3 sizes.',
  ],
  [
    () => build(ResNet.config({ strides: [1, 2] })),
    'model (ResNet): channels has 4 stages, and strides has 2.',
  ],
  [
    () => build(MobileNet.config({ strides: [1, 2] })),
    'model (MobileNet): strides has 2 blocks, and expansions has 17.',
  ],
  [
    () =>
      build(ResNetBlock.config({ inputDim: 4, outputDim: 4, zeroInitResidual: true, convParams: smooth() })),
    'model (ResNetBlock): zeroInitResidual begins with a gamma of BatchNorm, and convParams has another norm.',
  ],
])('refused: %#', (act, message) => {
  expect(act).toThrow(message);
});
