/** @file Functions whose work counts when they return: a promise from one is refused by the function's name. */
import { ConfigError } from './errors.js';

/** A function returned a promise where none can be waited for. */
export class PromiseError extends ConfigError {}

/** @throws PromiseError where `result`, which `who` returned, is a promise; `why` says what waits for nobody. */
export function refusePromise(result: unknown, who: string, why: string, place?: string): void {
  if (!(result instanceof Promise)) return;
  // What it throws later has nobody to catch it, and would end the process.
  result.catch(() => {});
  throw new PromiseError(`${who} must not be async: ${why}.`, { place });
}
