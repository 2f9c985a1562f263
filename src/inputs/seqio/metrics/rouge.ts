/** @file Rouge: overlap of n-grams, or the longest common subsequence (Lin 2004), as rouge_score computes it. */
import { z } from 'zod';
import { BasePredictMetric, meanOver } from './taskMetric.js';
import { fMeasure, ngramCounts, overlap, wordsOf } from './wordCounts.js';

/**
 * The mean F-measure of predictions, 0 to 1, without stemming. Words are runs of a to z and 0 to 9, in lower case. Of a
 * list of references, the one that fits best counts.
 */
export class Rouge extends BasePredictMetric.with({
  type: z
    .enum(['rouge1', 'rouge2', 'rougeL'])
    .default('rougeL')
    .describe('Unit of overlap: words, pairs of words, or the longest common subsequence of words.'),
}) {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    return meanOver(targets, predictions, (references, prediction) => {
      const words = rougeWords(prediction);
      return Math.max(...references.map((reference) => this.#of(rougeWords(reference), words)));
    });
  }

  #of(wanted: readonly string[], predicted: readonly string[]): number {
    if (this.hp.type === 'rougeL')
      return fMeasure(commonLength(wanted, predicted), predicted.length, wanted.length);
    const n = this.hp.type === 'rouge1' ? 1 : 2;
    const number = (words: readonly string[]): number => Math.max(0, words.length - n + 1);
    const shared = overlap(ngramCounts(wanted, n), ngramCounts(predicted, n));
    return fMeasure(shared, number(predicted), number(wanted));
  }
}

function rougeWords(text: string): string[] {
  return wordsOf(text.toLowerCase().replace(/[^a-z0-9]+/g, ' '));
}

/** Length of the longest common subsequence. */
function commonLength(a: readonly string[], b: readonly string[]): number {
  // Lengths for each beginning of b, with the beginning of a so far.
  const lengths = new Uint32Array(b.length + 1);
  for (const word of a) {
    let diagonal = 0;
    for (let j = 1; j <= b.length; j++) {
      const above = lengths[j]!;
      lengths[j] = word === b[j - 1] ? diagonal + 1 : Math.max(above, lengths[j - 1]!);
      diagonal = above;
    }
  }
  return lengths[b.length]!;
}
