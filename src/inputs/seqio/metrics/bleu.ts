/** @file Bleu: corpus BLEU, as sacrebleu computes it (Papineni et al. 2002; Post 2018). */
import { z } from 'zod';
import { BasePredictMetric, referencesOf } from './taskMetric.js';
import { ngramCounts, overlap, wordsOf } from './wordCounts.js';

const ORDERS = [1, 2, 3, 4];

/** Tokenization of mteval-v13a. */
function tokenize13a(text: string): string {
  const line = text
    .replaceAll('<skipped>', '')
    .replaceAll('-\n', '')
    .replaceAll('\n', ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>');
  return ` ${line} `
    .replace(/[{-~[-` -&(-+:-@/]/gu, ' $& ')
    .replace(/([^0-9])([.,])/gu, '$1 $2 ')
    .replace(/([.,])([^0-9])/gu, ' $1 $2')
    .replace(/([0-9])(-)/gu, '$1 $2 ');
}

/** Tokenization of mteval-v14 with international punctuation. */
function tokenizeIntl(text: string): string {
  return text
    .replace(/(\P{Nd})(\p{P})/gu, '$1 $2 ')
    .replace(/(\p{P})(\P{Nd})/gu, ' $1 $2')
    .replace(/\p{S}/gu, ' $& ');
}

/**
 * BLEU of all predictions together, 0 to 100: up to 4-grams, with sacrebleu's brevity penalty, exponential smoothing and
 * tokenization. A target may be a list of references.
 */
export class Bleu extends BasePredictMetric.with({
  tokenize: z.enum(['13a', 'intl']).default('13a').describe("Tokenization: sacrebleu's, or that of T5."),
  lowercase: z.boolean().default(false).describe('Whether case is ignored.'),
}) {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    const counts = { shared: ORDERS.map(() => 0), all: ORDERS.map(() => 0), length: 0, wanted: 0 };
    for (const [i, target] of targets.entries()) {
      const words = this.#words(String(predictions[i]));
      const references = referencesOf(target).map((text) => this.#words(text));
      counts.length += words.length;
      counts.wanted += closestLength(references, words.length);
      for (const [order, n] of ORDERS.entries()) {
        counts.shared[order]! += overlap(ngramCounts(words, n), mostOf(references, n));
        counts.all[order]! += Math.max(0, words.length - n + 1);
      }
    }
    if (counts.shared.every((count) => count === 0) || counts.all.includes(0)) return 0;
    let smoothing = 1;
    const logs = counts.shared.map((shared, order) => {
      if (shared === 0) smoothing *= 2;
      return Math.log((shared === 0 ? 1 / smoothing : shared) / counts.all[order]!);
    });
    const brevity = Math.min(0, 1 - counts.wanted / counts.length);
    return 100 * Math.exp(brevity + logs.reduce((sum, log) => sum + log, 0) / ORDERS.length);
  }

  #words(text: string): string[] {
    const { tokenize, lowercase } = this.hp;
    const line = lowercase ? text.trimEnd().toLowerCase() : text.trimEnd();
    return wordsOf(tokenize === '13a' ? tokenize13a(line) : tokenizeIntl(line));
  }
}

/** The length that is nearest to `length`; of two, the shorter one. */
function closestLength(references: readonly (readonly string[])[], length: number): number {
  const lengths = references.map((words) => words.length).sort((a, b) => a - b);
  return lengths.reduce((best, other) => (Math.abs(other - length) < Math.abs(best - length) ? other : best));
}

/** Each n-gram as often as the reference with most of it has it. */
function mostOf(references: readonly (readonly string[])[], n: number): Map<string, number> {
  const most = new Map<string, number>();
  for (const words of references)
    for (const [ngram, count] of ngramCounts(words, n))
      most.set(ngram, Math.max(count, most.get(ngram) ?? 0));
  return most;
}
