/** @file Metrics by class of a whole evaluation: the confusion matrix; precision, recall and F1. */
import { z } from 'zod';
import { ConfigError } from '../hparams/index.js';
import { argMax, classifierFields, rowsOf } from './evalMetrics.js';
import { type Accumulation, BaseEvalMetric, type ClassNames, type ExampleTensors } from './evaluation.js';
import type { MetricTable } from './metrics.js';

/** Base of the metrics that count labels by prediction. */
abstract class ConfusionMetric extends BaseEvalMetric.with(classifierFields) {
  static override readonly isAbstract = true;

  override tensorNames(): readonly string[] {
    const { logits, labels, weights } = this.hp;
    return [logits, labels, weights];
  }

  override accumulate(classNames: ClassNames): Accumulation {
    const { hp } = this;
    let sums: Float64Array[] = [];
    return {
      add: (tensors) => {
        sums = counted(sums, tensors, hp);
      },
      result: () => {
        const names = classNames(hp.labels);
        return this.tableOf(
          sums,
          sums.map((_, id) => names?.[id] ?? String(id)),
        );
      },
    };
  }

  /** @param sums weight of the rows of each label by their prediction */
  protected abstract tableOf(sums: readonly Float64Array[], names: readonly string[]): MetricTable;
}

/** Adds a batch's rows to sums of weights by label and prediction. @throws ConfigError for labels that are no classes */
function counted(before: Float64Array[], tensors: ExampleTensors, hp: ConfusionMetric['hp']): Float64Array[] {
  const logits = tensors[hp.logits]!;
  const classes = logits.shape.at(-1)!;
  const sums = before.length > 0 ? before : Array.from({ length: classes }, () => new Float64Array(classes));
  for (const [row, label, weight] of rowsOf(logits, tensors[hp.labels]!, tensors[hp.weights]!)) {
    const own = sums[label];
    if (own === undefined)
      throw new ConfigError(`label ${label} is none of the ${classes} classes that the logits have`);
    own[argMax(row)]! += weight;
  }
  return sums;
}

/** Weights of rows by label (rows) and prediction (columns), as scikit-learn's `confusion_matrix` has them. */
export class ConfusionMatrix extends ConfusionMetric.with({
  normalize: z
    .boolean()
    .default(false)
    .describe('Whether each label has the shares of its predictions, which sum to 1.'),
}) {
  protected override tableOf(sums: readonly Float64Array[], names: readonly string[]): MetricTable {
    const shares = (row: Float64Array): number[] => {
      const total = this.hp.normalize ? row.reduce((a, b) => a + b, 0) : 1;
      return Array.from(row, (count) => count / total);
    };
    return { rows: names, columns: names, values: sums.map(shares) };
  }
}

/** Precision, recall, F1 and weight of each class. A share of no rows is NaN. */
export class PrecisionRecall extends ConfusionMetric.with({}) {
  protected override tableOf(sums: readonly Float64Array[], names: readonly string[]): MetricTable {
    const values = sums.map((row, id) => {
      const right = row[id]!;
      const actual = row.reduce((a, b) => a + b, 0);
      const predicted = sums.reduce((sum, other) => sum + other[id]!, 0);
      return [right / predicted, right / actual, (2 * right) / (predicted + actual), actual];
    });
    return { rows: names, columns: ['precision', 'recall', 'f1', 'weight'], values };
  }
}
