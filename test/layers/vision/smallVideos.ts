/** @file Settings of small networks over videos: two sizes, the coarser of half the frames. */
import type { Tensor } from '../../../src/compiler/index.js';
import { type BaseLayer, CondNormLayer, GroupNormSpatial, VideoResBlock } from '../../../src/layers/index.js';

/** A layer of one input. */
export type Plain = BaseLayer & { fprop(x: Tensor): Tensor };

export const normTpl = () => GroupNormSpatial.config({ numGroups: 2 });
export const resBlockTpl = () => VideoResBlock.config({ normLayerTpl: normTpl() });
export const sizes = {
  filters: 2,
  embeddingDim: 4,
  numResBlocks: 1,
  temporalDownsample: [true],
  channelMultipliers: [1, 2],
};
/** Values of an encoder or a decoder. */
export const networks = () => ({ ...sizes, normTpl: normTpl(), resBlockTpl: resBlockTpl() });
export const condNormTpl = () => CondNormLayer.config({ groupNormTpl: normTpl() });
