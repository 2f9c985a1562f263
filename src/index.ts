/**
 * @file The names that experiments commonly need: at most 100, each used in docs/guide. Each room exports the rest behind
 * a sub-path of the package: `luthier/hparams`, `luthier/layers`, …
 */

import { registerLibrary } from './rooms.js';

export { fiddler, sweep } from './cli/index.js';
export { compile, type Tensor, tf, valueAndGrad } from './compiler/index.js';
export { SampleDecoder } from './decoding/index.js';
export { Experiment, type ExperimentConfigs } from './experiment/index.js';
export {
  type AnyConfig,
  applyDiff,
  assign,
  build,
  buildDiff,
  type Config,
  ConfigError,
  type ConfigOf,
  Configurable,
  type ConfigValues,
  codegen,
  configurable,
  copy,
  copyWith,
  deepCopy,
  defineTag,
  derive,
  diffToSvg,
  factory,
  formatDiff,
  fromJSON,
  getPath,
  grep,
  history,
  instance,
  isEqual,
  isSet,
  loadConfigFile,
  narrow,
  type PartialConfig,
  print,
  printHistory,
  printTree,
  type Report,
  registerAlias,
  renamed,
  saveConfigFile,
  select,
  setPath,
  setTagged,
  sub,
  tagged,
  toJSON,
  toSvg,
  unset,
  validate,
} from './hparams/index.js';
export {
  BaseInput,
  type Batch,
  ByteTokenizer,
  CharTokenizer,
  charVocabularyOf,
  type LmBatch,
  openInput,
  RowInput,
  SyntheticLmInput,
  TextInput,
} from './inputs/index.js';
export { jit } from './jit/index.js';
export {
  BaseLayer,
  Constant,
  DotProductAttention,
  FeedForward,
  initVariables,
  Linear,
  listVariables,
  runInContext,
  Tanh,
  type Theta,
  type Visibility,
} from './layers/index.js';
export {
  Adam,
  AdamW,
  BaseOptimizer,
  type Direction,
  Learner,
  LinearRampupCosineDecay,
  type RuleInputs,
  type SlotSpecs,
  type SlotVariable,
  slotLike,
} from './learners/index.js';
export { gpt2Lm, LanguageModel, llamaLm, pretrainedLm } from './models/index.js';
export {
  BaseProgram,
  CheckpointLoadingRules,
  Decode,
  type ProgramRun,
  SingleTask,
  TrackMetric,
  Train,
  type WholeCheckpoint,
} from './tasks/index.js';
export { loadRun } from './trained/loadRun.js';

// Documents and flags name the library's classes, which whoever reads them need not import one by one.
registerLibrary();
