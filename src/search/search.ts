/** @file The config of a search (Pax's SearchHParams), and those that are common. */
import { z } from 'zod';
import { type Config, ConfigError, Configurable, instance } from '../hparams/index.js';
import { BaseAlgorithm } from './algorithms/algorithm.js';
import { RandomSearch } from './algorithms/randomSearch.js';
import { RegularizedEvolution } from './algorithms/regularizedEvolution.js';
import { Sweeping } from './algorithms/sweeping.js';
import { Tpe } from './algorithms/tpe/tpe.js';
import {
  BaseReward,
  MnasHard,
  MnasSoft,
  MultiObjective,
  SingleObjective,
  TunasAbsolute,
} from './searchRewards.js';
import { type Space, spaceSchema, type Value } from './space.js';
import { CrossStepMetricAggregator, LastReportedMetricValues } from './trialMeasurements.js';
import { BaseEarlyStopping } from './trialStopping.js';

const count = z.int().positive();

/** A search: what an experiment's `search()` returns. */
export class Search extends Configurable.with({
  space: spaceSchema
    .default({})
    .describe('Domains by parameter: constants of the experiment, or paths into its configs, as in --set.'),
  searchAlgorithm: instance(BaseAlgorithm, () => RandomSearch.config()).describe('What proposes the trials.'),
  searchReward: instance(BaseReward, null)
    .nullable()
    .default(null)
    .describe('What makes a trial good; null: all are equal.'),
  earlyStopping: instance(BaseEarlyStopping, null)
    .nullable()
    .default(null)
    .describe('When a trial ends beside others; null: none does.'),
  crossStepMetricAggregator: instance(CrossStepMetricAggregator, () =>
    LastReportedMetricValues.config(),
  ).describe('Which metrics of all steps make the reward.'),
  maxNumTrials: count.default(1_000_000).describe('Number of trials.'),
  seed: z.int().nonnegative().default(0).describe('Seed of the proposals.'),
  errorsToSkip: z
    .array(z.string())
    .default([])
    .describe(
      'Regular expressions: of a trial that ends by such an error, it is infeasible, and is not tried again.',
    ),
  retries: z.int().nonnegative().default(2).describe('How often a trial that fails is tried again.'),
  failFast: z
    .boolean()
    .default(false)
    .describe('Whether a trial that has failed for good ends the search; otherwise it counts as infeasible.'),
  priorStudies: z
    .array(z.string())
    .default([])
    .describe('Directories of earlier studies of the space, from whose trials the algorithm learns.'),
  addPriorTrials: z
    .boolean()
    .default(false)
    .describe(
      'Whether the ended trials of priorStudies are trials of this study, its first ones, which count for maxNumTrials.',
    ),
  treatsEarlyStoppedTrialsAsDone: z
    .boolean()
    .default(false)
    .describe('Whether trials that were stopped early have rewards.'),
  stepsPath: z
    .string()
    .default('task.train.numTrainSteps')
    .describe('The setting that has the steps of a trial, for algorithms that say so.'),
}) {}

interface TuningOptions {
  readonly space: Space;
  readonly metric: string;
  readonly goal?: 'maximize' | 'minimize';
  readonly maxNumTrials?: number;
  readonly rewardForNan?: number;
}

/** A search for hyperparameters by one metric; Pax's, by TPE in place of its sweep. */
export function hyperparameterTuning(options: TuningOptions): Config<Search> {
  const { space, metric, goal = 'maximize', maxNumTrials = 100, rewardForNan = null } = options;
  return Search.config({
    space,
    maxNumTrials,
    searchAlgorithm: Tpe.config(),
    searchReward: SingleObjective.config({ metric, goal, rewardForNan }),
  });
}

interface ArchitectureOptions {
  readonly space: Space;
  /** A quality, and the cost where there are two. */
  readonly metrics: readonly [string] | readonly [string, string];
  readonly costObjective?: number;
  readonly rewardType?: 'tunas' | 'mnas_hard' | 'mnas_soft';
  readonly exponent?: number;
  readonly maxNumTrials?: number;
  readonly rewardForNan?: number;
}

const costRewards = { tunas: TunasAbsolute, mnas_hard: MnasHard, mnas_soft: MnasSoft } as const;

/** A search for architectures by a quality, or by a quality and a cost, with Pax's defaults. */
export function neuralArchitectureSearch(options: ArchitectureOptions): Config<Search> {
  const { space, metrics, rewardType = 'tunas', exponent = -0.07, rewardForNan = null } = options;
  const [quality, cost] = metrics;
  const { costObjective } = options;
  if (cost !== undefined && costObjective === undefined)
    throw new ConfigError(`neuralArchitectureSearch: ${cost} needs a costObjective.`);
  const searchReward =
    cost === undefined
      ? SingleObjective.config({ metric: quality, rewardForNan })
      : MultiObjective.config({
          metrics: [quality, cost],
          aggregator: costRewards[rewardType].config({ costObjective: costObjective!, exponent }),
          rewardForNan,
        });
  return Search.config({
    space,
    searchReward,
    maxNumTrials: options.maxNumTrials ?? 10_000,
    searchAlgorithm: RegularizedEvolution.config(),
  });
}

/** Trials of given rows, the first of which has the names of the parameters (Pax's `@parameter_sweep`). */
export function parameterSweep(
  combinations: readonly (readonly Value[])[],
  searchReward: Config<BaseReward> | null = null,
): Config<Search> {
  return Search.config({
    searchAlgorithm: Sweeping.config({ combinations: combinations.map((row) => [...row]) }),
    searchReward,
    maxNumTrials: Math.max(1, combinations.length - 1),
    treatsEarlyStoppedTrialsAsDone: true,
  });
}
