/** @file The outcome of a trial: its measurements in metrics.jsonl, and the rewards that follow. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isThere } from '../files/index.js';
import { isNamed, type Measurement, type Search } from '../search/index.js';
import type { Outcome } from '../search/studies/index.js';
import { parseMetricsLine } from '../summaries/index.js';

/** Fields of a search that say what the outcome is. */
type Rules = Pick<Search['hp'], 'searchReward' | 'crossStepMetricAggregator'>;

/** Metrics so far, from the lines of a run. */
function* metricsOf(
  directory: string,
): Iterable<{ step: number; metrics: Record<string, number>; names: string[] }> {
  const path = join(directory, 'metrics.jsonl');
  if (!isThere(path)) return;
  const metrics: Record<string, number> = {};
  for (const line of readFileSync(path, 'utf8').split('\n').slice(0, -1)) {
    const { program, step, ...fields } = parseMetricsLine(line) ?? {};
    if (typeof program !== 'string' || typeof step !== 'number') continue;
    const names: string[] = [];
    for (const [field, value] of Object.entries(fields)) {
      if (typeof value !== 'number') continue;
      const name = `${program}/${field.replace(/^Metrics\//, '')}`;
      metrics[name] = value;
      names.push(name);
    }
    yield { step, metrics, names };
  }
}

/** Measurements of a run at the steps that report a metric of the reward; without a reward, at all steps. */
export function measurementsOf(directory: string, reward: Rules['searchReward']): Measurement[] {
  const found: Measurement[] = [];
  const missing = new Set(reward?.usedMetrics);
  for (const { step, metrics, names } of metricsOf(directory)) {
    const isUsed = (name: string) => names.some((metric) => isNamed(metric, name));
    if (reward !== null && !reward.usedMetrics.some(isUsed)) continue;
    for (const name of missing) if (isUsed(name)) missing.delete(name);
    if (missing.size > 0) continue;
    const measured = { step, metrics: { ...metrics }, rewards: reward?.rewardsOf(metrics) ?? [0] };
    if (found.at(-1)?.step === step) found.pop();
    found.push(measured);
  }
  return found;
}

/** Rewards of a run. @throws ConfigError where it has not reported the metrics of the reward */
export function rewardsOf(
  directory: string,
  { searchReward, crossStepMetricAggregator }: Rules,
): Pick<Outcome, 'rewards' | 'metrics'> {
  const measurements = measurementsOf(directory, searchReward);
  if (searchReward === null) return { rewards: [0] };
  if (measurements.length === 0) {
    const last = [...metricsOf(directory)].at(-1)?.metrics ?? {};
    return { rewards: searchReward.rewardsOf(last) };
  }
  const metrics = crossStepMetricAggregator.aggregate(measurements);
  const used = Object.entries(metrics).filter(([metric]) =>
    searchReward.usedMetrics.some((name) => isNamed(metric, name)),
  );
  return { rewards: searchReward.rewardsOf(metrics), metrics: Object.fromEntries(used) };
}
