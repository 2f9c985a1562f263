/** @file The compiler: from tf.* functions to executables. Independent of configs and layers. */

export { type EagerDevice, loadBackend } from './eager/eagerBackend.js';
export { runEagerly } from './eager/runEagerly.js';
export {
  type CompileOptions,
  compile,
  compileProgram,
  evalShape,
  type Following,
} from './engines/compile.js';
export { ENGINES, type Engine, mayBeNative } from './engines/engine.js';
export { type FillOptions, fillRandom, readyToFill, takeMemory } from './engines/fillRandom.js';
export { KeptPrograms } from './engines/keptPrograms.js';
export { type Lazy, lazy } from './engines/lazy.js';
export type { Transpose, Words } from './native/library.js';
export { cpuName, kernelRates, nativeTools, nativeTransposition } from './native/nativeTools.js';
export { memoryBandwidth, nativePeak } from './native/peak.js';
export { type Parts, type ProgramMemory, programMemory } from './native/programMemory.js';
export {
  BFLOAT16_PRODUCTS,
  type Bfloat16Products,
  boundText,
  chooseBfloat16,
  type KernelTable,
  namedRates,
  productsBy,
} from './native/toolchain/kernelTable.js';
export { mpiLibrary } from './native/toolchain/mpiLibrary.js';
export { exportOnnx, type OpenSpec } from './onnx/exportModel.js';
export { loadRuntime } from './onnx/onnxSession.js';
export { defineElementwise, type Elementwise } from './ops/defineElementwise.js';
export { splitKeyHost } from './ops/distributionOps.js';
export * as ops from './ops/index.js';
export { addRows, type RowGradient, rowsOfGradient } from './ops/rowGradients.js';
export { type FactorProduct, factorProducts } from './passes/factorProducts.js';
export type { Part, PartKind } from './profile/part.js';
export { Profiler, type ProgramProfile } from './profile/profiler.js';
export type { Pages } from './program/backend.js';
export {
  type Cost,
  costAnalysis,
  executions,
  nodeFlops,
  productPrecision,
  viewedValues,
} from './program/cost.js';
export type { BoundCall, Executable } from './program/executable.js';
export { fingerprint, isElementwise, operationsOf, placesOf } from './program/fingerprint.js';
export { firstNonFinite, type NonFinite } from './program/firstNonFinite.js';
export * from './program/flat.js';
export { IndexError } from './program/indexChecks.js';
export { narrow, widen } from './program/narrowStorage.js';
export {
  currentPrecision,
  DEFAULT_PRECISION,
  operandStorage,
  PRECISION_NAMES,
  type Precision,
} from './program/precision.js';
export type { RankCalls } from './program/rankCalls.js';
export { TensorMemory } from './program/tensorMemory.js';
export type {
  BoundArray,
  DType,
  HostArray,
  HostTensor,
  NarrowArray,
  NarrowFloat,
  NarrowType,
  Shape,
  TensorSpec,
  Tree,
} from './program/tensors.js';
export {
  byteSize,
  CompilerError,
  DeviceError,
  formatSpec,
  NARROW,
  newHostArray,
  sizeOf,
} from './program/tensors.js';
export { flattenTree, mapTree } from './program/tensorTrees.js';
export { type Distribution, type Draw, fillNow } from './random/draws.js';
export * from './random/prng.js';
export { type Group, memberOf, membersOf } from './rules/collectiveRules.js';
export {
  type Collective,
  collectivesOf,
  type MeshShape,
  type ProgramBorders,
  partitionProgram,
  type Sharding,
} from './spmd/index.js';
export type { Tensor } from './tfjs/tfjs.js';
export * as tf from './tfjs/tfjs.js';
export { dependences, dependencesOf } from './trace/dependences.js';
export { readScope } from './trace/gradientScopes.js';
export {
  isTensor,
  keepAuxiliary,
  NoGradientError,
  observeGradient,
  valueAndGrad,
} from './trace/gradients.js';
export { withDrawsFrom } from './trace/replacedDraws.js';
export { placeOf, withScope } from './trace/scopes.js';
export {
  chainPrograms,
  isSpec,
  type OnHost,
  type Program,
  type TensorFunction,
  traceProgram,
} from './trace/tracedProgram.js';
export { isTracing, withBackend, withPrecision } from './trace/tracing.js';
export { showUsersFrame } from './trace/usersFrame.js';
