/** @file Search: spaces, algorithms, rewards, and the configs of a search. */
export { BaseAlgorithm, type NoProposal, type SearchState } from './algorithms/algorithm.js';
export { Nsga2 } from './algorithms/nsga2.js';
export { PopulationBasedTraining } from './algorithms/populationBasedTraining.js';
export { RandomSearch } from './algorithms/randomSearch.js';
export { RegularizedEvolution } from './algorithms/regularizedEvolution.js';
export { SuccessiveHalving } from './algorithms/successiveHalving.js';
export { Sweeping } from './algorithms/sweeping.js';
export { Tpe } from './algorithms/tpe/tpe.js';
export { ladder } from './scaling/index.js';
export { hyperparameterTuning, neuralArchitectureSearch, parameterSweep, Search } from './search.js';
export {
  BaseReward,
  isNamed,
  type Metrics,
  MnasHard,
  MnasSoft,
  MultiObjective,
  MultiObjectiveAggregator,
  SingleObjective,
  TunasAbsolute,
  WeightedSum,
} from './searchRewards.js';
export { choice, type Domain, integer, real, type Space, type Value, type Values } from './space.js';
export {
  type ClaimedTrial,
  type Outcome,
  readTrials,
  Study,
  type StudyOptions,
  type StudyTrial,
} from './studies/index.js';
export type { Proposal, Trial, TrialState } from './trial.js';
export {
  AverageMetricValues,
  CrossStepMetricAggregator,
  LastReportedMetricValues,
  type Measurement,
  MetricsWithMaxValue,
  MetricsWithMinValue,
} from './trialMeasurements.js';
export {
  BaseEarlyStopping,
  EarlyStoppingByExpectedGain,
  EarlyStoppingByRank,
  EarlyStoppingByValue,
  type OtherTrial,
} from './trialStopping.js';
