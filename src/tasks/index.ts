/** @file Tasks: a model with the way it is trained, its step functions, and means of metrics. */

export { batchStep, stepNumberSpec, type TrainInputs, type TrainOutputs, tapStep } from './batchGradients.js';
export { applyRule, type Candidate, CheckpointLoadingRules, namesOf } from './checkpointLoadingRules.js';
export {
  BaseCheckpointPolicy,
  SaveAtSteps,
  SaveBest,
  SaveContinuously,
  SaveEveryDuration,
  SaveEverySteps,
} from './checkpointPolicies.js';
export { ConfusionMatrix, PrecisionRecall } from './confusion.js';
export { Decode } from './decode.js';
export { BaseEarlyStoppingFn, StopAtTarget, type StoppingInputs } from './earlyStopping.js';
export { EditErrorRate } from './editErrors.js';
export { Auc, F1, Perplexity, RSquared } from './evalMetrics.js';
export {
  type Accumulation,
  BaseEvalMetric,
  type ClassNames,
  type EvalOutputs,
  type EvaluatedExample,
  Evaluation,
  type ExampleTensors,
  type MetricValue,
} from './evaluation.js';
export { BaseExecutor, DefaultExecutor, type ExecutedJob } from './executor.js';
export {
  BaseInferenceRunner,
  EXAMPLE_ID,
  Infer,
  InferWriter,
  ModelPredictions,
  namedTensors,
} from './inference.js';
export { LanguageTaskInput } from './languageTasks/languageTaskInput.js';
export { LanguageTaskProgram } from './languageTasks/languageTaskProgram.js';
export {
  continuationRow,
  type Encoder,
  rollingRows,
  SCORE,
  type ScoredRow,
  scoredBatch,
} from './languageTasks/scoredRows.js';
export { type LanguageTask, readTask } from './languageTasks/taskFile.js';
export { matchMetrics, scoredMetrics, scoredTexts, type TaskMetrics } from './languageTasks/taskMetrics.js';
export {
  BaseLossAggregator,
  LossAggregator,
  MultiLossAggregator,
  WeightedLossAggregator,
} from './lossAggregators.js';
export { type LocalVariable, Mesh } from './mesh.js';
export { meshShapes } from './meshShapes.js';
export {
  type MetricImages,
  type MetricTable,
  WeightedMeans,
  type WeightedValue,
  type WeightedValues,
} from './metrics.js';
export { MultiTask } from './multiTask.js';
export {
  BaseProgram,
  type DataDecodeSettings,
  type DecodeSettings,
  type EvaluateSettings,
  type Inference,
  type InferPosition,
  type InferredBatch,
  type InferSettings,
  type Program,
  type ProgramInput,
  type ProgramRun,
  type RestoredCheckpoint,
  type WholeCheckpoint,
} from './program.js';
export type { DecodedExample, DecodeResult, EvalResult, InferResult, Sample } from './results.js';
export type { Answer, Reward } from './rewards.js';
export { RolloutInput } from './rolloutInput.js';
export { cut, isPart, paste, type Shard } from './shards.js';
export { Evaluate, SingleTask } from './singleTask.js';
export {
  evalKey,
  evalStep,
  forwardStep,
  inferStep,
  metricValues,
  type StepMetrics,
} from './steps.js';
export { addTables, partsOfRank, type RowGradients, treeReduce, treeSum } from './subBatches.js';
export { TrackMetric } from './trackMetric.js';
export { Train } from './train.js';
export { type GradientSums, gradientStep, meanStep, trainStep } from './trainStep.js';
export { VariationalNoise } from './variationalNoise.js';
