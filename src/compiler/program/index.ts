/** @file Data at the compiler's boundary, without TensorFlow.js: worker threads load it. */

export { producers, type Value } from './ir.js';
export { type HostTensor, hostArrayIn, newHostArray, sizeOf, type TensorSpec, type Tree } from './tensors.js';
export { flattenTree } from './tensorTrees.js';
