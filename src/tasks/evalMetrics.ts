/** @file Metrics of whole evaluations: perplexity, F1, area under the ROC curve, R². Definitions are scikit-learn's. */
import { z } from 'zod';
import type { HostTensor } from '../compiler/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import { type Accumulation, BaseEvalMetric } from './evaluation.js';
import type { WeightedValue } from './metrics.js';

const name = (default_: string, what: string) =>
  z.string().min(1).default(default_).describe(`Name of ${what}.`);
const weights = name('weights', 'the weights [...], 0 for padding');

/** e to the power of a mean in nats: of all tokens, where a mean of batches' perplexities would depend on the batches. */
export class Perplexity extends BaseEvalMetric.with({
  of: name('total_loss', "the model's metric, a cross entropy in nats"),
}) {
  override tensorNames(): readonly string[] {
    return [];
  }

  override accumulate(): Accumulation {
    const { of } = this.hp;
    return {
      add() {},
      result(means) {
        const mean = means[of];
        if (mean !== undefined) return { value: Math.exp(mean.value), weight: mean.weight };
        const names = Object.keys(means);
        throw new ConfigError(
          `Perplexity.of: the model has no metric '${of}'.${didYouMean(of, names)} It has: ${names.join(', ')}.`,
        );
      },
    };
  }
}

/** The logits of one row. */
type Row = ArrayLike<number> & { readonly length: number };

/**
 * Rows of logits [..., classes] with their labels [...] and weights [...], without padding.
 *
 * @throws ConfigError for labels that are no ids
 */
export function* rowsOf(
  logits: HostTensor,
  labels: HostTensor,
  weights: HostTensor,
): Generator<[Row, number, number]> {
  const classes = logits.shape.at(-1)!;
  if (labels.data.length !== weights.data.length)
    throw new ConfigError(
      `expected labels that are ids of classes, of shape [${weights.shape.join(', ')}]; got [${labels.shape.join(', ')}]. ` +
        "Where these are the classes' shares, leave numClasses of the evaluation's ImageInput null.",
    );
  for (const [i, weight] of weights.data.entries()) {
    if (weight === 0) continue;
    yield [logits.data.subarray(i * classes, (i + 1) * classes), labels.data[i]!, weight];
  }
}

/** Fields of the metrics of classifiers. */
export const classifierFields = {
  logits: name('logits', 'the logits [..., classes]'),
  labels: name('labels', 'the ids of the classes, int32 [...]'),
  weights,
};

/**
 * F1, the harmonic mean of precision and recall: `macro`, the mean over the classes that occur as a label or as a
 * prediction, or `micro`, of all decisions together, which equals the accuracy.
 */
export class F1 extends BaseEvalMetric.with({
  ...classifierFields,
  average: z.enum(['macro', 'micro']).default('macro').describe('How classes are averaged.'),
}) {
  override tensorNames(): readonly string[] {
    const { logits, labels, weights } = this.hp;
    return [logits, labels, weights];
  }

  override accumulate(): Accumulation {
    const { hp } = this;
    // Weight by class: of rows that are predicted right, of all predictions, of all labels.
    const [right, predicted, actual] = [
      new Map<number, number>(),
      new Map<number, number>(),
      new Map<number, number>(),
    ];
    const count = (sums: Map<number, number>, id: number, weight: number) =>
      sums.set(id, (sums.get(id) ?? 0) + weight);
    return {
      add(tensors) {
        for (const [row, label, weight] of rowsOf(
          tensors[hp.logits]!,
          tensors[hp.labels]!,
          tensors[hp.weights]!,
        )) {
          const best = argMax(row);
          count(predicted, best, weight);
          count(actual, label, weight);
          if (best === label) count(right, label, weight);
        }
      },
      result() {
        const classes = [...new Set([...predicted.keys(), ...actual.keys()])];
        const f1 = classes.map(
          (id) => (2 * (right.get(id) ?? 0)) / ((predicted.get(id) ?? 0) + (actual.get(id) ?? 0)),
        );
        const total = sum(actual.values());
        const value = hp.average === 'micro' ? sum(right.values()) / total : sum(f1) / classes.length;
        return { value, weight: total };
      },
    };
  }
}

/**
 * Area under the ROC curve, exact: the probability that a row of the class has a higher score than another one, ties
 * half. Of two classes it is that of class 1; of more, the mean over the classes, each against the rest, by softmax. All
 * scores of an evaluation are kept in memory. NaN where a class has no rows or all of them.
 */
export class Auc extends BaseEvalMetric.with(classifierFields) {
  override tensorNames(): readonly string[] {
    const { logits, labels, weights } = this.hp;
    return [logits, labels, weights];
  }

  override accumulate(): Accumulation {
    const { hp } = this;
    const rows: { readonly scores: number[]; readonly label: number; readonly weight: number }[] = [];
    return {
      add(tensors) {
        for (const [row, label, weight] of rowsOf(
          tensors[hp.logits]!,
          tensors[hp.labels]!,
          tensors[hp.weights]!,
        ))
          rows.push({ scores: logSoftmax(row), label, weight });
      },
      result() {
        const classes = rows[0]?.scores.length ?? 0;
        const ids = classes === 2 ? [1] : Array.from({ length: classes }, (_, id) => id);
        const areas = ids.map((id) =>
          areaUnderCurve(rows.map(({ scores, label, weight }) => [scores[id]!, label === id, weight])),
        );
        return { value: sum(areas) / areas.length, weight: sum(rows.map(({ weight }) => weight)) };
      },
    };
  }
}

/** Area under the ROC curve of scores of rows that are of the class or not, with weights. */
function areaUnderCurve(rows: readonly (readonly [score: number, isOf: boolean, weight: number])[]): number {
  const sorted = rows.toSorted(([a], [b]) => a - b);
  // Weight of the rows of each kind that lie below, and of those with the same score.
  let [below, won, positive] = [0, 0, 0];
  for (let i = 0; i < sorted.length; ) {
    const tied = { of: 0, not: 0 };
    const [score] = sorted[i]!;
    for (; i < sorted.length && sorted[i]![0] === score; i++)
      tied[sorted[i]![1] ? 'of' : 'not'] += sorted[i]![2];
    won += tied.of * (below + tied.not / 2);
    below += tied.not;
    positive += tied.of;
  }
  return won / (positive * below);
}

/** R², the share of the targets' variance that the predictions explain; of several outputs, the mean over them. */
export class RSquared extends BaseEvalMetric.with({
  predictions: name('predictions', 'the predictions [batch] or [batch, outputs]'),
  targets: name('labels', 'the targets, of the same shape'),
  weights,
}) {
  override tensorNames(): readonly string[] {
    const { predictions, targets, weights } = this.hp;
    return [predictions, targets, weights];
  }

  override accumulate(): Accumulation {
    const { hp } = this;
    const outputs: { mean: number; squares: number; residual: number }[] = [];
    let total = 0;
    return {
      add(tensors) {
        const [predictions, targets] = [tensors[hp.predictions]!.data, tensors[hp.targets]!.data];
        const rows = tensors[hp.weights]!.data;
        const size = targets.length / rows.length;
        for (const [i, weight] of rows.entries()) {
          if (weight === 0) continue;
          total += weight;
          for (let k = 0; k < size; k++) {
            const output = (outputs[k] ??= { mean: 0, squares: 0, residual: 0 });
            const target = targets[i * size + k]!;
            output.residual += weight * (target - predictions[i * size + k]!) ** 2;
            // Welford's update of the mean and the squares around it.
            const off = target - output.mean;
            output.mean += (weight / total) * off;
            output.squares += weight * off * (target - output.mean);
          }
        }
      },
      result(): WeightedValue {
        const each = outputs.map(({ squares, residual }) => 1 - residual / squares);
        return { value: sum(each) / each.length, weight: total };
      },
    };
  }
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** Place of the first of the highest logits. */
export function argMax(row: Row): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (row[i]! > row[best]!) best = i;
  return best;
}

function logSoftmax(row: Row): number[] {
  const logits = Array.from(row);
  const top = Math.max(...logits);
  const norm = top + Math.log(sum(logits.map((x) => Math.exp(x - top))));
  return logits.map((x) => x - norm);
}
