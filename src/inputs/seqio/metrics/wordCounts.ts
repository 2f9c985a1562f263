/** @file Words of texts, as metrics count them. */

/** The parts of a text between white space. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** How often each run of `n` words occurs. */
export function ngramCounts(words: readonly string[], n: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let i = 0; i + n <= words.length; i++) {
    const ngram = words.slice(i, i + n).join(' ');
    counts.set(ngram, (counts.get(ngram) ?? 0) + 1);
  }
  return counts;
}

/** Number of n-grams that two texts share, each as often as both have it. */
export function overlap(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let shared = 0;
  for (const [ngram, count] of a) shared += Math.min(count, b.get(ngram) ?? 0);
  return shared;
}

/** Harmonic mean of precision and recall; 0 where nothing is shared. */
export function fMeasure(shared: number, predicted: number, wanted: number): number {
  return shared === 0 ? 0 : (2 * shared) / (predicted + wanted);
}
