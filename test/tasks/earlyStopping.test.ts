/** @file Early stopping by a target: GPT-3's of MLPerf (published-experiments), and metrics that are misspelt. */
import { expect, test } from 'vitest';
import { C4SpmdAdam, C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas } from '../../experiments/c4.js';
import { build, ConfigError } from '../../src/hparams/index.js';
import { StopAtTarget } from '../../src/tasks/index.js';

const at = (metrics: Record<string, number>, fresh = Object.keys(metrics)) => ({
  ...{ metrics, fresh: new Set(fresh), runningMode: 'train', step: 3, isLast: false },
});

test('GPT-3 stops at a log-perplexity of 2.69 on its validation set, and not above or without it', () => {
  const config = new C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas().task().earlyStoppingFn!;
  const stopping = build(config);
  const key = 'eval_test_C4Validation/metrics/log_pplx';
  expect(stopping.shouldStop(at({ [key]: 2.7 }))).toBe(false);
  expect(stopping.shouldStop(at({ [key]: 2.69 }))).toBe(`${key} is 2.69, and its target 2.69.`);
  expect(stopping.shouldStop(at({ [key]: Number.NaN }))).toBe(false);
  expect(stopping.shouldStop(at({ 'train/loss': 1 }))).toBe(false);
  // A value of an earlier step has been looked at.
  expect(stopping.shouldStop(at({ [key]: 2.6 }, []))).toBe(false);
  expect(new C4SpmdAdam().task().earlyStoppingFn).toBe(null);
});

test('a metric that its evaluation lacks is named', () => {
  const stopping = build(
    StopAtTarget.config({ metric: 'eval_test_a/metrics/acuracy', target: 0.9, mode: 'max' }),
  );
  expect(() => stopping.shouldStop(at({ 'eval_test_a/metrics/accuracy': 1 }))).toThrow(
    new ConfigError(
      "task.earlyStoppingFn.metric: 'eval_test_a' has no 'eval_test_a/metrics/acuracy'. " +
        "Did you mean 'eval_test_a/metrics/accuracy'? It has: eval_test_a/metrics/accuracy.",
      { path: 'task.earlyStoppingFn.metric' },
    ),
  );
});
