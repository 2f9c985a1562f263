/** @file The compiler: from tf.* functions to executables. Independent of configs and layers. */

export type { Runner } from './backend.js';
export {
  type CompileOptions,
  compile,
  compileProgram,
  evalShape,
  type Following,
} from './compile.js';
export { type Cost, costAnalysis, type OpCost } from './cost.js';
export { defineElementwise, type Elementwise, type ElementwiseDefinition } from './defineElementwise.js';
export { dependences, dependencesOf } from './dependences.js';
export { type Distribution, type Draw, fillNow } from './draws.js';
export { type EagerDevice, loadBackend } from './eager/eagerBackend.js';
export { runEagerly } from './eager/runEagerly.js';
export { ENGINES, type Engine, mayBeNative } from './engine.js';
export type { BoundCall, Executable } from './executable.js';
export { type FillOptions, fillRandom, readyToFill, takeMemory } from './fillRandom.js';
export { firstNonFinite, type NonFinite, type NonFiniteOptions } from './firstNonFinite.js';
export * from './flat.js';
export { readScope } from './gradientScopes.js';
export {
  isTensor,
  keepAuxiliary,
  NoGradientError,
  observeGradient,
  type ValueAndGrad,
  valueAndGrad,
} from './gradients.js';
export { IndexError } from './indexChecks.js';
export { KeptPrograms } from './keptPrograms.js';
export { type Lazy, type LazyOptions, lazy } from './lazy.js';
export { narrow, widen } from './narrow.js';
export { cpuName, type NativeTools, nativeTools } from './native/nativeTools.js';
export { memoryBandwidth, nativePeak } from './native/peak.js';
export { exportOnnx, type OnnxOptions, type OpenSpec } from './onnx/exportModel.js';
export { splitKeyHost } from './ops/distributionOps.js';
export * as ops from './ops/index.js';
export type { Precision } from './precision.js';
export * from './prng.js';
export type { Part, PartKind } from './profile/part.js';
export { Profiler, type ProgramProfile } from './profile/profiler.js';
export { withDrawsFrom } from './replacedDraws.js';
export { placeOf, withScope } from './scopes.js';
export type {
  BoundArray,
  DType,
  HostArray,
  HostTensor,
  NarrowArray,
  NarrowType,
  Shape,
  TensorSpec,
  Tree,
} from './tensors.js';
export {
  byteSize,
  CompilerError,
  DeviceError,
  formatSpec,
  NARROW,
  newHostArray,
  sizeOf,
} from './tensors.js';
export { flattenTree, mapTree } from './tensorTrees.js';
export type { Tensor } from './tfjs.js';
export * as tf from './tfjs.js';
export { isSpec, type Program, traceProgram } from './tracedProgram.js';
export { isTracing, withBackend, withPrecision } from './tracing.js';
export { showUsersFrame } from './usersFrame.js';
