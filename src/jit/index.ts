/** @file Compiled functions for programs in TensorFlow.js: tensors, variables and optimizers of tfjs. */
export type { BucketOptions, Rows } from './buckets.js';
export { type BucketJitOptions, type JitOptions, type Jitted, jit, type ModelOptions } from './jit.js';
export { type CompiledGraphModel, type CompiledModel, compileModel } from './models.js';
