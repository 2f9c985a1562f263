/** @file Convolutions and poolings on every engine, by the contract of layers. */
import { type Tensor, tf } from '../../../src/compiler/index.js';
import type { Config } from '../../../src/hparams/index.js';
import {
  type BaseLayer,
  Conv1D,
  Conv2D,
  Conv2DTranspose,
  Conv3D,
  ConvBNActWithPadding,
  LightConv1D,
  Pooling1D,
  Swish,
  WeightNormL2,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';

type Plain = BaseLayer & { fprop(x: Tensor): Tensor };
const plain = (title: string, config: Config<Plain>, shape: readonly number[]) =>
  layerCase({ title, config, inputs: { x: floats(shape) }, call: (layer, { x }) => layer.fprop(x!) });

type Padded = BaseLayer & { fprop(x: Tensor, paddings?: Tensor): Tensor };
/** Of the sequences [2, 5, ...], the second has padding. */
const padded = (title: string, config: Config<Padded>, shape: readonly number[]) =>
  layerCase({
    title,
    config,
    inputs: { x: floats(shape), paddings: given('int32', [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], [2, 5]) },
    call: (layer, { x, paddings }) => layer.fprop(x!, tf.cast(paddings!, 'float32')),
  });

checkLayers('convolutions', [
  plain('Conv1D', Conv1D.config({ filterShape: [3, 4, 2], isCausal: true, bias: true }), [2, 6, 4]),
  plain(
    'Conv2D, depthwise',
    Conv2D.config({ filterShape: [3, 3, 1, 8], filterStride: [2, 2] }),
    [2, 5, 4, 8],
  ),
  plain(
    'Conv2D, groups, weight norm',
    Conv2D.config({ filterShape: [3, 3, 2, 4], weightNormTpl: WeightNormL2.config() }),
    [2, 3, 4, 4],
  ),
  plain(
    'Conv3D',
    Conv3D.config({ filterShape: [3, 2, 2, 2, 3], filterStride: [2, 1, 1], isCausal: true }),
    [2, 4, 3, 3, 2],
  ),
  plain(
    'Conv2DTranspose',
    Conv2DTranspose.config({ filterShape: [3, 3, 2, 3], filterStride: [2, 2], bias: true }),
    [2, 3, 2, 3],
  ),
  padded('LightConv1D', LightConv1D.config({ inputDims: 4, kernelSize: 3, isCausal: true }), [2, 5, 4]),
  padded(
    'ConvBNActWithPadding',
    ConvBNActWithPadding.config({
      filterShape: [3, 3, 2, 3],
      filterStride: [2, 1],
      activationTpl: Swish.config(),
    }),
    [2, 5, 3, 2],
  ),
  padded('Pooling1D', Pooling1D.config({ stride: 2, window: 3 }), [2, 5, 2]),
]);
