/** @file The one error family of configs: what is wrong, where in the config, where in the code. */

export interface ConfigErrorOptions {
  /** Path of the config or field inside the root that was worked on, such as `model.layers[0].inputDims`. */
  path?: string | undefined;
  /** Where the value was written: `file:line`, or the text of a command-line flag. */
  place?: string | undefined;
  cause?: unknown;
}

const longest = 8_000;

/** A message, its middle left out where a flag, a path or a value in it is so long that nobody reads it. */
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

/** A value was read that is not set and has no default: those who only look (rules, say) may pass over it. */
export class NotSetError extends ConfigError {}
