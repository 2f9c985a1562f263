/** @file Learners: optimizers, schedules, gradient transforms and the update of flat buffers. */

export type { LearnableVariable } from './learnableVariable.js';
export { Learner } from './learner.js';
export { mapValues } from './mapValues.js';
export { MultiOptimizerLearner } from './multiOptimizerLearner.js';
export { Adafactor } from './optimizers/adafactor.js';
export { Adagrad, RmsProp } from './optimizers/adagrad.js';
export { Adam, AdamW } from './optimizers/adam.js';
export { Lamb, Lars } from './optimizers/lamb.js';
export { Lion } from './optimizers/lion.js';
export { Muon } from './optimizers/muon.js';
export { BaseOptimizer, LearningRate } from './optimizers/optimizer.js';
export type { Direction, NamedTensors, RuleInputs } from './optimizers/rule.js';
export { ScheduleFreeAdamW } from './optimizers/scheduleFree.js';
export { Sgd } from './optimizers/sgd.js';
export { Shampoo } from './optimizers/shampoo.js';
export {
  EMA,
  fillSlots,
  PRETRAINED,
  refillSlots,
  type SlotLayout,
  type SlotLayouts,
  type SlotSpecs,
  type SlotVariable,
  slotBytes,
  slotLike,
} from './optimizers/slots.js';
export { Sm3 } from './optimizers/sm3.js';
export { Soap } from './optimizers/soap.js';
export { StaticAccumulator } from './optimizers/staticAccumulator.js';
export { changingPart, groupParts, NON_TRAINABLE, type VariableGroup } from './optimizers/variableGroup.js';
export { isPattern, wholePath } from './pathPattern.js';
export {
  BaseStochasticGradient,
  DpSgdStochasticGradient,
  PerLayerDpSgdStochasticGradient,
} from './privacy/stochasticGradients.js';
export {
  ByTokens,
  CycleSchedule,
  DecayBranch,
  PiecewiseConstant,
  PiecewiseSchedule,
} from './schedules/composedSchedules.js';
export {
  LinearRampupCosineDecay,
  LinearRampupExponentialDecay,
  LinearRampupPiecewiseConstant,
  LinearRampupPolynomialDecay,
  LinearRampupSqrtDecay,
} from './schedules/rampups.js';
export {
  BaseSchedule,
  Constant,
  ContinuousSchedule,
  Cosine,
  DelayedCosine,
  Exponential,
  InversePower,
  Linear,
  Polynomial,
  SqrtDecay,
  Transformer,
} from './schedules/schedules.js';
export { sharedLayouts } from './sharedLayout.js';
export { type Gradients, type GradientTransform, withNorm } from './transforms/clipping.js';
export { sumOfSquares } from './transforms/norms.js';
export { OutlierBound } from './transforms/outlierBound.js';
export type { FlatUpdater, RowBuffers, UpdateReport } from './updater.js';
