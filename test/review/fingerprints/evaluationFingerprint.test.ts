/** @file Fingerprint of metrics of whole evaluations: what of their code it sees, and when a metric counts as failing. */
import { expect, test } from 'vitest';
import type { Program } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import { hostMetricsDigest } from '../../../src/review/fingerprints/evaluationFingerprint.js';
import { BaseEvalMetric, type SingleTask } from '../../../src/tasks/index.js';

type Tensors = Parameters<ReturnType<BaseEvalMetric['accumulate']>['add']>[0];

/** A metric of one tensor, by all that it reads. */
const metricOf = (name: string, result: (values: number[], classes: readonly string[] | null) => number) =>
  class extends BaseEvalMetric {
    override tensorNames() {
      return [name];
    }

    override accumulate(classNames: Parameters<BaseEvalMetric['accumulate']>[0]) {
      const values: number[] = [];
      return {
        add: (tensors: Tensors) =>
          void values.push(...Array.from(tensors[name]!.data as ArrayLike<number>, Number)),
        result: () => ({ value: result(values, classNames(name)), weight: values.length }),
      };
    }
  };

const program = {
  graph: {
    outputs: [
      { shape: [4, 5], dtype: 'float32' },
      { shape: [], dtype: 'float32' },
    ],
  },
  outputPaths: ['examples.logits', 'metrics.loss.value'],
} as unknown as Program;
const batch = { labels: { shape: [4], dtype: 'int32' }, isEnd: { shape: [4], dtype: 'bool' } } as never;

const digestOf = (...metrics: (new (...args: never[]) => BaseEvalMetric)[]): string => {
  const evalMetrics = Object.fromEntries(
    metrics.map((cls, i) => [
      `m${i}`,
      build((cls as unknown as { config(): Config<BaseEvalMetric> }).config()),
    ]),
  );
  return hostMetricsDigest({ hp: { evalMetrics } } as unknown as SingleTask, program, batch);
};

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

test('another result, and the same one by other code', () => {
  const mean = digestOf(metricOf('logits', (values) => sum(values) / values.length));
  expect(digestOf(metricOf('logits', (values) => sum(values) * (1 / values.length) || 0))).toBe(mean);
  expect(digestOf(metricOf('logits', (values) => 1 - sum(values) / values.length))).not.toBe(mean);
  expect(digestOf()).not.toBe(mean);
});

test('what only negative logits, zeros, ends, later classes or their names show', () => {
  const count = (of: (value: number) => boolean, name = 'logits') =>
    digestOf(metricOf(name, (values) => values.filter(of).length));
  const all = count(() => true);
  expect(count((value) => value >= 0)).not.toBe(all);
  expect(count((value) => value !== 0)).not.toBe(all);
  expect(count((value) => value < 1, 'isEnd')).not.toBe(count(() => true, 'isEnd'));
  const named = digestOf(metricOf('labels', (_, classes) => classes?.length ?? 0));
  expect(digestOf(metricOf('labels', () => 0))).not.toBe(named);
});

test('one that fails for some values is told by its error, one that fails for all fails', () => {
  const unless = (isFine: (values: number[]) => boolean, text: string) =>
    metricOf('logits', (values) => {
      if (!isFine(values)) throw new Error(text);
      return 1;
    });
  const positive = (values: number[]): boolean => Math.min(...values) >= 0;
  expect(digestOf(unless(positive, 'negative'))).not.toBe(digestOf(unless(positive, 'below zero')));
  expect(() => digestOf(unless(() => false, 'no share'))).toThrow('no share');
});
