/** @file The operations of our own that layers call beside tf.*. */
import * as tf from '../tfjs.js';

export { hostConstant } from '../trace.js';
export { type AttentionOptions, attention, causalMask } from './attention.js';
export { softmaxCrossEntropy } from './crossEntropy.js';
export { embeddingLookup } from './embedding.js';
export { gelu } from './gelu.js';
export { layerNorm, type NormOptions, rmsNorm } from './norm.js';
export { dropout, foldIn, randomUniform } from './random.js';
export { updateSlice } from './updateSlice.js';

/** Softmax over the last axis. */
export const softmax = (x: tf.Tensor): tf.Tensor => tf.softmax(x);
