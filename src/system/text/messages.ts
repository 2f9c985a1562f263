/** @file Texts of messages: bounded, counted, listed, and with the nearest valid name. */
import { distance } from 'fastest-levenshtein';

const longest = 8_000;

/** A message, its middle left out if a flag, a path or a value in it is very long. */
export function bounded(message: string): string {
  if (message.length <= longest) return message;
  const left = countText(message.length - longest);
  return `${message.slice(0, longest * 0.75)}… (${left} more characters) …${message.slice(-longest * 0.25)}`;
}

/** Lines below a message, `most` at most, and how many more there are. */
export function linesBelow(lines: readonly string[], most = 20): string {
  const more = lines.length > most ? [`… and ${countText(lines.length - most)} more`] : [];
  return [...lines.slice(0, most), ...more].map((line) => `\n  ${line}`).join('');
}

/** A text in quotes as a POSIX shell reads it. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A word of a command as a POSIX shell reads it: quoted if it holds more than letters, digits and common signs. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : shellQuoted(word);
}

/** `119,990`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** The candidate closest to `name`, or undefined if none is close enough. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  // A third of the letters may differ, two of a short name, but no more than half: enough for a slip or two, too few to
  // suggest an unrelated word.
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const lower = candidate.toLowerCase();
    const away = lower === wanted ? 0 : distance(wanted, lower);
    if (away < bestDistance && away <= Math.max(name.length, candidate.length) / 2) {
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
