/** @file Rewards, aggregation over steps, early stopping, and the configs of searches. */
import { describe, expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import {
  AverageMetricValues,
  type BaseReward,
  type CrossStepMetricAggregator,
  EarlyStoppingByExpectedGain,
  EarlyStoppingByRank,
  EarlyStoppingByValue,
  LastReportedMetricValues,
  type Measurement,
  MetricsWithMaxValue,
  MetricsWithMinValue,
  MnasHard,
  MnasSoft,
  MultiObjective,
  type MultiObjectiveAggregator,
  neuralArchitectureSearch,
  parameterSweep,
  real,
  SingleObjective,
  TunasAbsolute,
  WeightedSum,
} from '../../src/search/index.js';

const metrics = {
  'train/loss': 3,
  'eval_test_a/total_loss': 2,
  'eval_test_b/total_loss': 4,
  'eval_test_b/num_params': 20,
};
const rewards = (reward: Config<BaseReward>) => build(reward).rewardsOf(metrics);

describe('rewards', () => {
  test.each([
    ['whole name', SingleObjective.config({ metric: 'train/loss' }), [3]],
    ['minimised', SingleObjective.config({ metric: 'loss', goal: 'minimize' }), [-3]],
    ['average', SingleObjective.config({ metric: 'eval_test_*/total_loss', aggregator: 'average' }), [3]],
    ['maximum', SingleObjective.config({ metric: 'total_loss', aggregator: 'max' }), [4]],
    ['several', MultiObjective.config({ metrics: ['loss', 'num_params'], goal: 'minimize' }), [-3, -20]],
  ])('%s', (_, reward, expected) => {
    expect(rewards(reward)).toEqual(expected);
  });

  const combined = (aggregator: Config<MultiObjectiveAggregator>) =>
    rewards(MultiObjective.config({ metrics: ['loss', 'num_params'], aggregator }))[0];

  test('several as one: the formulas of TuNAS and MnasNet', () => {
    const cost = { costObjective: 10, exponent: -0.5 };
    expect(combined(WeightedSum.config({ weights: [3, -1] }))).toBeCloseTo((9 - 20) / 4);
    expect(combined(TunasAbsolute.config(cost))).toBeCloseTo(3 - 0.5);
    expect(combined(MnasSoft.config(cost))).toBeCloseTo(3 / Math.SQRT2);
    expect(combined(MnasHard.config(cost))).toBeCloseTo(3 / Math.SQRT2);
    expect(combined(MnasHard.config({ ...cost, costObjective: 40 }))).toBe(3);
    expect(combined(MnasSoft.config({ ...cost, costObjective: 80 }))).toBeCloseTo(6);
  });

  test('errors name the metrics', () => {
    expect(() => rewards(SingleObjective.config({ metric: 'total_los' }))).toThrow(
      "No metric is named 'total_los'. There are: train/loss, eval_test_a/total_loss, eval_test_b/total_loss, eval_test_b/num_params.",
    );
    expect(() => rewards(SingleObjective.config({ metric: 'total_loss' }))).toThrow(
      "The metrics eval_test_a/total_loss, eval_test_b/total_loss are all named 'total_loss': name one of them, or set aggregator.",
    );
    expect(() => combined(WeightedSum.config({ weights: [1] }))).toThrow(
      'WeightedSum: expected 1 metrics, as weights, got 2.',
    );
  });

  test('a reward for what is no number', () => {
    const ofNan = (rewardForNan: number | null) =>
      build(SingleObjective.config({ metric: 'loss', goal: 'minimize', rewardForNan })).rewardsOf({
        'train/loss': Number.NaN,
      });
    expect([ofNan(-9), ofNan(null)]).toEqual([[-9], [Number.NaN]]);
  });
});

const measured = (step: number, loss: number, reward = -loss): Measurement => ({
  step,
  metrics: { 'train/loss': loss },
  rewards: [reward],
});
const run = (...losses: number[]) => losses.map((loss, i) => measured(10 * (i + 1), loss));

test('metrics of several steps as one', () => {
  const loss = (config: Config<CrossStepMetricAggregator>) =>
    build(config).aggregate(run(4, 1, 2))['train/loss'];
  expect(loss(LastReportedMetricValues.config())).toBe(2);
  expect(loss(AverageMetricValues.config())).toBeCloseTo(7 / 3);
  expect(loss(AverageMetricValues.config({ lastN: 2 }))).toBe(1.5);
  expect(loss(MetricsWithMaxValue.config())).toBe(1);
  expect(loss(MetricsWithMaxValue.config({ metric: 'loss' }))).toBe(4);
  expect(loss(MetricsWithMinValue.config({ metric: 'loss' }))).toBe(1);
});

describe('early stopping', () => {
  const others = (...runs: number[][]) =>
    runs.map((losses) => ({ measurements: run(...losses), isDone: true }));

  test('by value', () => {
    const rule = build(
      EarlyStoppingByValue.config({ stepValues: [[20, 3]], metric: 'loss', maximize: false }),
    );
    expect(rule.reasonToStop(run(9))).toBeUndefined();
    expect(rule.reasonToStop(run(9, 3))).toBeUndefined();
    expect(rule.reasonToStop(run(9, 3.5))).toBe('3.5 at step 20 is worse than 3');
  });

  test('by rank, by number and by share, once there are enough', () => {
    const rule = (limit: number) => build(EarlyStoppingByRank.config({ stepRanks: [[10, limit, 4]] }));
    expect(rule(2).reasonToStop(run(9), others([1], [2]))).toBeUndefined();
    expect(rule(2).reasonToStop(run(9), others([1], [2], [10]))).toBe('rank 3 of 4 at step 10');
    expect(rule(0.5).reasonToStop(run(1.5), others([1], [2], [10]))).toBeUndefined();
    expect(rule(0.5).reasonToStop(run(3), others([1], [2], [10]))).toBe('rank 3 of 4 at step 10');
  });

  test('by expected gain: as far as finished runs tell', () => {
    const rule = build(EarlyStoppingByExpectedGain.config({ minGain: 0.05, minTrials: 4 }));
    const known = others([4, 2.1], [5, 2.9], [6, 4.1], [7, 4.9]);
    expect(rule.reasonToStop(run(3.5), known)).toBeUndefined();
    expect(rule.reasonToStop(run(7), known)).toMatch(/^expected gain \S+ at step 10 is below 0.05$/);
    expect(rule.reasonToStop(run(7), known.slice(1))).toBeUndefined();
  });
});

test('an architecture search by quality and cost, and rows of a sweep', () => {
  const space = { x: real(0, 1) };
  const metricsOfBoth = ['accuracy', 'num_params'] as const;
  const search = build(neuralArchitectureSearch({ space, metrics: metricsOfBoth, costObjective: 5 }));
  expect(search.hp).toMatchObject({ maxNumTrials: 10_000 });
  expect(search.hp.searchReward!.rewardsOf({ 'eval/accuracy': 0.5, num_params: 10 })[0]).toBeCloseTo(0.43);
  expect(() => neuralArchitectureSearch({ space, metrics: metricsOfBoth })).toThrow(
    'neuralArchitectureSearch: num_params needs a costObjective.',
  );
  expect(build(parameterSweep([['lr'], [1], [2]])).hp.maxNumTrials).toBe(2);
});
