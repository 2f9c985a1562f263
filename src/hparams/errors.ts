/** @file Errors of configs: the problem, its path, the line that wrote the value, and the nearest valid name. */
import { distance } from 'fastest-levenshtein';

export interface ConfigErrorOptions {
  /** Path of the config or field inside the root that was worked on, such as `model.layers[0].inputDims`. */
  path?: string | undefined;
  /** Where the value was written: `file:line`, or the text of a command-line flag. */
  place?: string | undefined;
  cause?: unknown;
}

const longest = 8_000;

/** A message, its middle left out if a flag, a path or a value in it is very long. */
export function bounded(message: string): string {
  if (message.length <= longest) return message;
  const left = countText(message.length - longest);
  return `${message.slice(0, longest * 0.75)}… (${left} more characters) …${message.slice(-longest * 0.25)}`;
}

/** Everything that can be wrong with a config: names, values, missing fields, cycles, failed builds. */
export class ConfigError extends Error {
  readonly path: string | undefined;
  readonly place: string | undefined;
  /** The message without the place it ends with. */
  readonly problem: string;

  constructor(problem: string, options: ConfigErrorOptions = {}) {
    const where = options.place === undefined ? '' : ` (at ${options.place})`;
    super(bounded(problem) + bounded(where), options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'ConfigError';
    this.problem = bounded(problem);
    this.path = options.path;
    this.place = options.place;
  }
}

/** Lines below a message, `most` at most, and how many more there are. */
export function linesBelow(lines: readonly string[], most = 20): string {
  const more = lines.length > most ? [`… and ${countText(lines.length - most)} more`] : [];
  return [...lines.slice(0, most), ...more].map((line) => `\n  ${line}`).join('');
}

/** `119,990`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** A function returned a promise where none can be waited for. */
export class PromiseError extends ConfigError {}

/** @throws PromiseError if `result`, returned by `who`, is a promise; `why` explains why nothing awaits it. */
export function refusePromise(result: unknown, who: string, why: string, place?: string): void {
  if (!(result instanceof Promise)) return;
  // An unhandled rejection would end the process.
  result.catch(() => {});
  throw new PromiseError(`${who} must not be async: ${why}.`, { place });
}

/** A value was read that is not set and has no default; read-only visitors (rules, say) may skip it. */
export class NotSetError extends ConfigError {}

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
