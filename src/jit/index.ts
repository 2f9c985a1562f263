/** @file Compiled functions for programs in TensorFlow.js: tensors, variables and optimizers of tfjs. */
export { type JitOptions, type Jitted, jit } from './jit.js';
export { type CompiledModel, compileModel } from './layersModel.js';
