import type { Config } from '../../../src/hparams/index.js';
import {
  CausalConv,
  CondNormLayer,
  Swish,
  VideoDecoder,
  VideoDiscriminator,
  VideoEncoder,
  VideoResBlock,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { condNormTpl, networks, normTpl, type Plain } from './smallVideos.js';

const plain = (title: string, config: Config<Plain>, shape: readonly number[], probes = 1) =>
  layerCase({ title, config, probes, inputs: { x: floats(shape) }, call: (layer, { x }) => layer.fprop(x!) });

checkLayers('videos', [
  plain(
    'a causal convolution',
    CausalConv.config({ filterShape: [2, 4, 3, 2, 3], filterStride: [2, 2, 1] }),
    [2, 3, 3, 2, 2],
  ),
  layerCase({
    title: 'a conditional norm',
    config: CondNormLayer.config({ groupNormTpl: normTpl(), embDim: 3, dim: 4 }),
    inputs: { x: floats([2, 2, 2, 1, 4]), emb: floats([2, 2, 2, 1, 3], 5) },
    call: (layer, { x, emb }) => layer.fprop(x!, emb!),
    variables: { 'gamma_linear/w': [3, 4], 'gamma_bias/b': [4], 'beta_linear/w': [3, 4], 'beta_bias/b': [4] },
  }),

  layerCase({
    title: 'a residual block',
    config: VideoResBlock.config({ inputDim: 2, outputDim: 4, normLayerTpl: normTpl() }),
    inputs: { x: floats([2, 2, 2, 3, 2]) },
    call: (layer, { x }) => layer.fprop(x!),
    probes: 1,
    variables: {
      'norm_0/beta': [2],
      'norm_0/gamma': [2],
      'norm_1/beta': [4],
      'norm_1/gamma': [4],
      'conv_0/w': [3, 3, 3, 2, 4],
      'conv_1/w': [3, 3, 3, 4, 4],
      'conv_shortcut/w': [1, 1, 1, 2, 4],
    },
  }),
  plain('an encoder', VideoEncoder.config(networks()), [2, 3, 4, 2, 3]),
  plain('a decoder', VideoDecoder.config({ ...networks(), condNormTpl: condNormTpl() }), [2, 2, 1, 2, 4]),
  plain(
    'a discriminator',
    VideoDiscriminator.config({
      ...{ filters: 2, numFrames: 3, imageHeight: 4, imageWidth: 2, channelMultipliers: [1, 2] },
      // Without a kink, at which finite differences see neither slope.
      activationTpl: Swish.config(),
    }),
    [2, 3, 4, 2, 3],
  ),
]);
