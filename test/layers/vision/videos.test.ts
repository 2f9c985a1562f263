/** @file Networks over videos: causality, sizes, variables, and what they refuse. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  BlurPool3D,
  CausalConv,
  DiscriminatorResBlock,
  LookupFreeQuantizer,
  listVariables,
  VideoDecoder,
  VideoDiscriminator,
  VideoEncoder,
  VQVaeModel,
} from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';
import { condNormTpl, networks, normTpl, type Plain, resBlockTpl, sizes } from './smallVideos.js';

test('windows see no later frames, and the edges beyond frames', () => {
  const [T, H, W] = [4, 3, 2];
  const layer = build(CausalConv.config({ filterShape: [3, 4, 3, 1, 1], filterStride: [1, 2, 1] }));
  const theta = randomTheta(layer);
  const x = tensor([1, T, H, W, 1]);
  const [cells, w, [b]] = [x.arraySync(), theta.w!.arraySync(), theta.b!.dataSync()] as [any, any, any];
  const within = (i: number, n: number): number => Math.min(Math.max(i, 0), n - 1);
  const expected: number[] = [];
  for (let t = 0; t < T; t++)
    for (let h = 0; h < H; h += 2)
      for (let v = 0; v < W; v++) {
        let sum = b;
        for (let i = 0; i < 3; i++)
          for (let j = 0; j < 4; j++)
            for (let k = 0; k < 3; k++)
              sum +=
                w[i][j][k][0][0] *
                cells[0][within(t + i - 2, T)][within(h + j - 1, H)][within(v + k - 1, W)][0];
        expected.push(sum);
      }
  const outputs = run(theta, () => layer.fprop(x));
  expect(outputs.shape).toEqual([1, T, 2, W, 1]);
  expectClose(outputs, expected);
});

test('blurs by binomial weights', () => {
  const layer = build(BlurPool3D.config({ filterSize: 4, strides: [1, 1, 2] }));
  const point = tf.reshape(tf.tensor1d([0, 0, 0, 0, 64, 0, 0, 0, 0]), [1, 1, 1, 9, 1]) as Tensor;
  // Of 9 cells there are 5 windows, from cell -1 on; time and height are a cell each, the second of their windows.
  expectClose(
    run({}, () => layer.fprop(point)),
    [0, 1, 3, 0, 0].map((weight) => (9 * weight) / 8),
  );
});

const causal: readonly (readonly [string, Config<Plain>, number[], number])[] = [
  ['an encoder', VideoEncoder.config(networks()), [1, 5, 4, 4, 3], 2],
  ['a decoder', VideoDecoder.config({ ...networks(), condNormTpl: condNormTpl() }), [1, 3, 2, 2, 4], 0.5],
];

test.each(causal)('%s sees no later frames', (_, config, shape, factor) => {
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor(shape);
  const frames = shape[1]!;
  const outputs = run(theta, () => layer.fprop(x));
  expect(outputs.shape[1]).toBe(1 + (frames - 1) / factor);
  const last = tf.pad(tf.ones([1, 1, ...shape.slice(2)]), [
    [0, 0],
    [frames - 1, 0],
    [0, 0],
    [0, 0],
    [0, 0],
  ]);
  const changed = run(theta, () => layer.fprop(tf.add(x, last)));
  const differs = tf
    .unstack(tf.max(tf.abs(tf.sub(changed, outputs)), [0, 2, 3, 4]))
    .map((d) => d.dataSync()[0]! > 1e-4);
  // Those that the last frame is part of.
  const own = Math.max(1, 1 / factor);
  expect(differs).toEqual(differs.map((_, t) => t >= differs.length - own));
});

test('depth becomes cells, frame by frame', () => {
  const config = VideoDecoder.config({ ...networks(), condNormTpl: condNormTpl(), outputDim: 2 });
  const layer = build(config);
  const shapes = Object.fromEntries(listVariables(layer).map(({ path, shape }) => [path, [...shape]]));
  expect(shapes['conv_upsample_layers_0/w']).toEqual([3, 3, 3, 4, 32]);
  expect(Object.keys(shapes).filter((path) => /^cond_norm_layers_\d\/beta_bias/.test(path))).toEqual([
    'cond_norm_layers_0/beta_bias/b',
    'cond_norm_layers_1/beta_bias/b',
  ]);
  expect(run(randomTheta(layer), () => layer.fprop(tensor([1, 2, 1, 2, 4]))).shape).toEqual([1, 3, 2, 4, 2]);
});

test('a video comes back from its codes', () => {
  const model = build(
    VQVaeModel.config({
      ...sizes,
      encoderTpl: VideoEncoder.config({ normTpl: normTpl(), resBlockTpl: resBlockTpl() }),
      decoderTpl: VideoDecoder.config({
        normTpl: normTpl(),
        resBlockTpl: resBlockTpl(),
        condNormTpl: condNormTpl(),
      }),
      quantizerTpl: LookupFreeQuantizer.config(),
    }),
  );
  const theta = randomTheta(model);
  const x = tensor([2, 3, 4, 4, 3]);
  const { outputs, encodingIndices } = run(theta, () => model.fprop(x), { doEval: true });
  expect(outputs.shape).toEqual(x.shape);
  expect(encodingIndices.shape).toEqual([2, 2, 2, 2]);
  expectClose(
    run(theta, () => model.decodeFromIndices(encodingIndices), { doEval: true }),
    outputs.dataSync(),
  );
});

test('sizes that do not fit', () => {
  const encoder = build(VideoEncoder.config(networks()));
  expect(() => run(randomTheta(encoder), () => encoder.fprop(tensor([1, 4, 2, 2, 3])))).toThrow(
    'model (VideoEncoder): expected videos [B, T, H, W, 3] of 1 + k · 2 frames, got [1, 4, 2, 2, 3].',
  );
  expect(() => build(VideoDecoder.config({ channelMultipliers: [1, 2] }))).toThrow(
    'model (VideoDecoder): temporalDownsample: expected 1 values, one less than channelMultipliers, got 3.',
  );
  const small = VideoDiscriminator.config({
    filters: 2,
    imageHeight: 4,
    imageWidth: 4,
    channelMultipliers: [1],
  });
  const discriminator = build(small);
  expect(() => run(randomTheta(discriminator), () => discriminator.fprop(tensor([1, 2, 4, 4, 3])))).toThrow(
    'model (VideoDiscriminator): expected videos [B, 1, 4, 4, 3], got [1, 2, 4, 4, 3].',
  );
  expect(build(DiscriminatorResBlock.config({ inputDim: 2 })).hp.outputDim).toBe(128);
});
