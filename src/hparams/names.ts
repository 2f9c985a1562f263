/** @file Suggestions for misspelt names. */
import { distance } from 'fastest-levenshtein';

/** The candidate most like `name`, or undefined where none is near enough to be what was meant. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  // A third of the letters may differ: enough for a slip or two, too few to suggest an unrelated word.
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const lower = candidate.toLowerCase();
    const away = lower === wanted ? 0 : distance(wanted, lower);
    if (away < bestDistance && away < Math.max(name.length, candidate.length)) {
      best = candidate;
      bestDistance = away;
    }
  }
  return best;
}

/** ` Did you mean 'x'?` with a leading space, or the empty string where nothing is near. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const suggestion = nearest(name, candidates);
  return suggestion === undefined ? '' : ` Did you mean '${suggestion}'?`;
}
