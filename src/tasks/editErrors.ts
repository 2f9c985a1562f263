/** @file Error rates of predicted sequences by edit distance: of characters, words or other symbols. */
import { z } from 'zod';
import type { HostTensor } from '../compiler/index.js';
import { type Accumulation, BaseEvalMetric } from './evaluation.js';

const name = (default_: string, what: string) =>
  z.string().min(1).default(default_).describe(`Name of ${what}.`);

/**
 * Insertions, deletions and substitutions that turn the predicted symbols into the labels (Levenshtein, 1966), by the number of
 * labels: the character error rate where symbols are characters. It exceeds 1 where more is inserted than there are labels.
 */
export class EditErrorRate extends BaseEvalMetric.with({
  predictions: name('predicted_ids', 'the predicted symbols, int32 [batch, T]; blanks stand for none'),
  labels: name('labels', 'the symbols, int32 [batch, N]'),
  labelPaddings: name('label_paddings', 'the paddings of the labels [batch, N]'),
  weights: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Name of the weights of rows [batch], 0 for padding; null: rows without labels are padding.'),
  blankId: z.int().default(0).describe('The id in predictions that stands for no symbol.'),
}) {
  override tensorNames(): readonly string[] {
    const { predictions, labels, labelPaddings, weights } = this.hp;
    return [predictions, labels, labelPaddings, ...(weights === null ? [] : [weights])];
  }

  override accumulate(): Accumulation {
    const { hp } = this;
    let [edits, symbols] = [0, 0];
    return {
      add(tensors) {
        const [predictions, labels] = [tensors[hp.predictions]!, tensors[hp.labels]!];
        const paddings = rowsOf(tensors[hp.labelPaddings]!);
        const weights = hp.weights === null ? null : tensors[hp.weights]!.data;
        const predicted = rowsOf(predictions).map((row) => row.filter((id) => id !== hp.blankId));
        for (const [b, row] of rowsOf(labels).entries()) {
          const expected = row.filter((_, i) => paddings[b]![i] === 0);
          if (weights === null ? expected.length === 0 : weights[b] === 0) continue;
          edits += editDistance(predicted[b]!, expected);
          symbols += expected.length;
        }
      },
      result: () => ({ value: edits / symbols, weight: symbols }),
    };
  }
}

/** The rows of a tensor [rows, size]. */
function rowsOf({ shape, data }: HostTensor): number[][] {
  const [rows, size] = shape as [number, number];
  return Array.from({ length: rows }, (_, b) => Array.from(data.subarray(b * size, (b + 1) * size)));
}

/** Fewest insertions, deletions and substitutions from one sequence to another. */
function editDistance(from: readonly number[], to: readonly number[]): number {
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (const [i, symbol] of from.entries()) {
    const next = [i + 1];
    for (const [j, other] of to.entries())
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + Number(symbol !== other)));
    row = next;
  }
  return row[to.length]!;
}
