/** @file Learners: optimizers, schedules, gradient transforms and the update of flat buffers. */
export { Adafactor } from './adafactor.js';
export { Adagrad, RmsProp } from './adagrad.js';
export { Adam, AdamW } from './adam.js';
export { type Gradients, type GradientTransform, withNorm } from './clipping.js';
export { type LearnableVariable, Learner } from './learner.js';
export { Lion } from './lion.js';
export { MultiOptimizerLearner } from './multiOptimizerLearner.js';
export { sumOfSquares } from './norms.js';
export { BaseOptimizer, LearningRate } from './optimizer.js';
export { isPattern, wholePath } from './pathPattern.js';
export {
  LinearRampupCosineDecay,
  LinearRampupExponentialDecay,
  LinearRampupPiecewiseConstant,
  LinearRampupPolynomialDecay,
  LinearRampupSqrtDecay,
} from './rampups.js';
export type { Direction, NamedTensors, RuleInputs } from './rule.js';
export {
  BaseSchedule,
  Constant,
  Cosine,
  DelayedCosine,
  Exponential,
  Linear,
  PiecewiseConstant,
  PiecewiseSchedule,
  Polynomial,
  SqrtDecay,
  Transformer,
} from './schedules.js';
export { Sgd } from './sgd.js';
export {
  beginAverage,
  EMA,
  fillSlots,
  refillSlots,
  type SlotLayout,
  type SlotSpecs,
  type SlotVariable,
  slotBytes,
  slotLike,
} from './slots.js';
export type { FlatUpdater, UpdateReport } from './updater.js';
export { changingPart, NON_TRAINABLE, type VariableGroup } from './variableGroup.js';
