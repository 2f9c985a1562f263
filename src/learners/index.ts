/** @file Learners: optimizers, schedules, clipping and the update of flat buffers. */
export { Adam, AdamW } from './adam.js';
export type { FusedUpdate } from './fusedUpdate.js';
export { type LearnableVariable, Learner } from './learner.js';
export { sumOfSquares } from './norms.js';
export {
  BaseOptimizer,
  EMA,
  FROZEN,
  type NamedTensors,
  type StepContext,
  type UpdateGroup,
} from './optimizer.js';
export type { UpdaterBuffers, UpdaterOptions } from './passes.js';
export {
  LinearRampupCosineDecay,
  LinearRampupExponentialDecay,
  LinearRampupPiecewiseConstant,
  LinearRampupPolynomialDecay,
  LinearRampupSqrtDecay,
} from './rampups.js';
export {
  BaseSchedule,
  ConstantSchedule,
  Cosine,
  DelayedCosine,
  Exponential,
  LinearSchedule,
  PiecewiseConstant,
  PiecewiseSchedule,
  Polynomial,
  SqrtDecay,
  TransformerSchedule,
} from './schedules.js';
export { Sgd } from './sgd.js';
export type { FlatUpdater, UpdateReport } from './updater.js';
