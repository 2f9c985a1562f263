/** @file The architectures of bench:beyond-gpt. */
import type { Architecture, Layer } from './architectures.js';

const relu: Layer = { kind: 'relu' };
const mean: Layer = { kind: 'mean' };
const pool: Layer = { kind: 'pool', size: 2 };
const head: Layer = { kind: 'dense', features: 10 };
const conv = (features: number, more: { size?: number; stride?: number; bias?: boolean } = {}): Layer => ({
  ...{ kind: 'conv', size: 3, features },
  ...more,
});
const dense = (features: number): Layer => ({ kind: 'dense', features });

/** A residual block of two 3x3 convolutions, with batch norm of the batch's own moments. */
const resnetBlock = (features: number, stride: number): Layer[] => [
  {
    kind: 'residual',
    body: [
      ...[conv(features, { stride, bias: false }), { kind: 'batchNorm' } as const, relu],
      ...[conv(features, { bias: false }), { kind: 'batchNorm' } as const],
    ],
    shortcut: stride === 1 ? [] : [conv(features, { size: 1, stride, bias: false })],
  },
  relu,
];

/** Pre-norm attention and feed-forward. */
export const transformerBlock = (width: number, heads: number, hidden: number, causal: boolean): Layer[] => [
  { kind: 'residual', body: [{ kind: 'layerNorm' }, { kind: 'attention', heads, causal }] },
  { kind: 'residual', body: [{ kind: 'layerNorm' }, dense(hidden), { kind: 'gelu' }, dense(width)] },
];

/** Two 3x3 convolutions with group norm. */
const twice = (features: number): Layer[] =>
  [0, 1].flatMap(() => [conv(features, { bias: false }), { kind: 'groupNorm', groups: 8 }, relu]);

/** A mixer of the library behind a norm, so many times. */
const mixers = (count: number, mixer: Layer): Layer[] =>
  Array.from({ length: count }, (): Layer => ({ kind: 'residual', body: [{ kind: 'layerNorm' }, mixer] }));

/** A language model of characters. */
const characters = (rows: number, steps: number, width: number, layers: Layer[]): Architecture => ({
  ...{ input: [rows, steps], vocabulary: 256, classes: 256 },
  layers: [{ kind: 'embed', features: width, vocabulary: 256 }, ...layers, dense(256)],
});

const tower: Layer[] = [{ kind: 'embed', features: 64, vocabulary: 50_000 }, dense(128), relu, dense(64)];

export const models: Readonly<Record<string, Architecture>> = {
  /** Four 3x3 convolutions, a pooling between. */
  conv: {
    input: [64, 32, 32, 3],
    classes: 10,
    layers: [conv(64), relu, conv(64), relu, pool, conv(128), relu, conv(128), relu, mean, head],
  },
  /** MobileNet's: three times a depthwise 3x3 convolution and a 1x1 one. */
  mobile: {
    input: [32, 32, 32, 64],
    classes: 10,
    layers: [
      ...[128, 128, 256].flatMap((features, i): Layer[] => [
        { kind: 'depthwise', size: 3, stride: 1 + (i % 2) },
        ...[relu, conv(features, { size: 1 }), relu],
      ]),
      ...[mean, head],
    ],
  },
  /** Two residual blocks, the second of half the side and twice the depth. */
  resnet: {
    input: [32, 28, 28, 64],
    classes: 10,
    layers: [...resnetBlock(64, 1), ...resnetBlock(128, 2), mean, head],
  },
  mlp: { input: [128, 784], classes: 10, layers: [dense(1024), relu, dense(1024), relu, head] },
  lstm: {
    input: [32, 32, 256],
    classes: 10,
    layers: [{ kind: 'lstm', features: 256 }, { kind: 'last' }, head],
  },
  gru: {
    input: [16, 64, 512],
    classes: 10,
    layers: [{ kind: 'gru', features: 512 }, { kind: 'last' }, head],
  },
  /** A U-Net, transposed convolutions upwards. */
  unet: {
    input: [8, 64, 64, 3],
    classes: 10,
    layers: [
      ...twice(32),
      {
        kind: 'concat',
        body: [
          pool,
          ...twice(64),
          { kind: 'concat', body: [pool, ...twice(128), { kind: 'grow', features: 64, size: 2 }] },
          ...twice(64),
          { kind: 'grow', features: 32, size: 2 },
        ],
      },
      ...[...twice(32), mean, head],
    ],
  },
  /** ViT-Ti (Touvron et al. 2021) on images of 64x64. */
  vit: {
    input: [32, 64, 64, 3],
    classes: 10,
    layers: [
      ...[{ kind: 'patches', features: 192, size: 8 } as const, { kind: 'tokens' } as const],
      { kind: 'positions' },
      ...Array.from({ length: 12 }, () => transformerBlock(192, 3, 768, false)).flat(),
      ...[{ kind: 'layerNorm' } as const, mean, head],
    ],
  },
  /** Users and items, of which each user's own is the label. */
  towers: {
    input: [512, 2],
    vocabulary: 50_000,
    classes: 512,
    layers: [{ kind: 'towers', bodies: [tower, tower] }],
  },
  lstmLm: characters(32, 64, 256, [{ kind: 'stackFrnn', cell: 'lstm', layers: 2 }]),
  gruLm: characters(32, 64, 256, [{ kind: 'stackFrnn', cell: 'gru', layers: 2 }]),
  /** The blocks of Conformer S (Gulati et al., 2020), four seconds at 25 frames each. */
  conformer: {
    input: [8, 100, 144],
    classes: 10,
    layers: [
      ...Array.from({ length: 2 }, (): Layer => ({ kind: 'conformer', heads: 4, size: 32 })),
      mean,
      head,
    ],
  },
  mamba: characters(8, 128, 128, mixers(2, { kind: 'mamba' })),
  deltaNet: characters(4, 256, 256, mixers(2, { kind: 'deltaNet', heads: 4, headDim: 64 })),
  resNet18: { input: [16, 64, 64, 3], classes: 10, layers: [{ kind: 'resNet18' }, head] },
  uNetLayers: {
    input: [8, 64, 64, 3],
    classes: 10,
    layers: [{ kind: 'uNet', channels: [32, 64, 128] }, mean, head],
  },
};
