/** @file The contract of layers, of quantizers and of the masking of tokens. */
import { tf } from '../../../src/compiler/index.js';
import {
  LookupFreeQuantizer,
  MaskedLmDataAugmenter,
  RandomVectorQuantizer,
  ScalarQuantizer,
  VectorQuantizer,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats, given, ids } from '../engineComparison.js';

const paddings = given('float32', [0, 0, 0, 1, 0, 0, 0, 0], [2, 4]);
const vq = VectorQuantizer.config({ numLatentClasses: 5, latentDim: 6, numGroups: 2, beta: 0.25 });

checkLayers('quantizers', [
  layerCase({
    title: 'VectorQuantizer',
    config: vq,
    inputs: { z: floats([2, 4, 6], 3), paddings },
    call: (layer, { z, paddings }) => layer.fprop(z!, paddings).zQ,
    variables: { w: [5, 2, 3] },
    stopsGradients: true,
  }),
  layerCase({
    title: 'loss of VectorQuantizer',
    variables: { w: [5, 2, 3] },
    config: vq,
    inputs: { z: floats([2, 4, 6], 3) },
    call: (layer, { z }) => layer.fprop(z!).loss,
    rowsApart: false,
    stopsGradients: true,
  }),
  layerCase({
    title: 'RandomVectorQuantizer',
    config: RandomVectorQuantizer.config({
      latentDim: 6,
      projectionDim: 4,
      numLatentClasses: 5,
      numGroups: 2,
    }),
    inputs: { z: floats([2, 4, 6], 3) },
    call: (layer, { z }) => layer.fprop(z!).zQ,
    probes: 0,
  }),
  layerCase({
    title: 'ScalarQuantizer',
    config: ScalarQuantizer.config({ dimWidths: [8, 5, 4] }),
    inputs: { x: floats([4, 3], 3) },
    call: (layer, { x }) => layer.fprop(x!).quantized,
    stopsGradients: true,
  }),
  layerCase({
    title: 'LookupFreeQuantizer',
    config: LookupFreeQuantizer.config({ embeddingDim: 4 }),
    inputs: { x: floats([4, 4], 3) },
    call: (layer, { x }) => layer.fprop(x!).quantized,
    stopsGradients: true,
  }),
  layerCase({
    title: 'losses of LookupFreeQuantizer',
    config: LookupFreeQuantizer.config({ embeddingDim: 4, entropyLossGroups: 2, entropyTemperature: 1 }),
    inputs: { x: floats([4, 4], 3) },
    call: (layer, { x }) => layer.fprop(x!).quantizerLoss,
    rowsApart: false,
  }),
  layerCase({
    title: 'losses of the likeliest codes',
    variables: {},
    config: LookupFreeQuantizer.config({ embeddingDim: 4, entropyLossType: 'argmax', entropyTemperature: 1 }),
    inputs: { x: floats([4, 4], 3) },
    call: (layer, { x }) => layer.fprop(x!).quantizerLoss,
    rowsApart: false,
    stopsGradients: true,
  }),
  layerCase({
    title: 'MaskedLmDataAugmenter',
    config: MaskedLmDataAugmenter.config({ vocabSize: 50, maskTokenId: 49, maskProb: 0.4 }),
    variables: {},
    inputs: { x: ids([3, 20], 50) },
    call: (layer, { x }) => tf.cast(layer.fprop(x!, tf.zeros(x!.shape)).inputs, 'float32'),
    rowsApart: false,
    probes: 0,
  }),
]);
