/** @file Errors of configs: the problem, its path, the line that wrote the value, and the nearest valid name. */
import { bounded } from '../system/text/index.js';

interface ConfigErrorOptions {
  /** Path of the config or field inside the root that was worked on, such as `model.layers[0].inputDims`. */
  path?: string | undefined;
  /** Where the value was written: `file:line`, or the text of a command-line flag. */
  place?: string | undefined;
  cause?: unknown;
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
