/** @file Application of fiddlers. */

import { commonRoots, type ExperimentConfigs } from '../experiment/index.js';
import { ConfigError, classOf, isConfig, refusePromise, showValue, withOrigin } from '../hparams/index.js';
import type { ResolvedExperiment } from '../registry/index.js';
import { showFile } from '../registry/names/index.js';
import { argumentsFor, type CommandFunction, findFunction } from './commandFunctions.js';
import { asUsage, type FiddlerOverride } from './overrides.js';

/** Failure of a function in the experiment's file: a fault of the file, not of the command line. */
class FunctionError extends Error {
  override name = 'FunctionError';
}

/**
 * Calls a function of the experiment's file. ConfigErrors already name their place; others get the flag.
 *
 * @throws ConfigError from the function; FunctionError around any other error.
 */
export function callFunction(command: CommandFunction, values: readonly unknown[], origin: string): unknown {
  let result: unknown;
  try {
    result = command.fn(...values);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new FunctionError(`${origin}: ${command.name}() failed.`, { cause });
  }
  refusePromise(result, `${command.name}()`, 'its result counts when it returns', origin);
  return result;
}

/**
 * Applies `--fiddler name(…)`, which edits the configs or returns replacements. The history records its own lines for
 * edits, the flag's text for replacements.
 *
 * @throws UsageError for an unknown fiddler or wrong arguments, ConfigError for an invalid result.
 */
export function applyFiddler(
  configs: ExperimentConfigs,
  { call, origin }: FiddlerOverride,
  resolved: ResolvedExperiment,
): void {
  const command = findFunction('fiddler', call.name, origin, resolved.exports, showFile(resolved.file));
  const values = asUsage(origin, () => argumentsFor(command, call, 1));
  const result = callFunction(command, [configs, ...values], origin);
  if (result === undefined || result === configs) return;
  const replacement = replacementOf(result, configs, command.name, origin);
  withOrigin(origin, () => Object.assign(configs, replacement));
}

function replacementOf(
  result: unknown,
  configs: ExperimentConfigs,
  name: string,
  place: string,
): Partial<ExperimentConfigs> {
  const expected = `return nothing, the configs, or some of {${commonRoots.join(', ')}}`;
  const fail = (problem: string): never => {
    throw new ConfigError(`${name}() returned ${problem}; ${expected}.`, { place });
  };
  if (isConfig(result) ? classOf(result as never) !== classOf(configs) : !isRecord(result)) {
    return fail(showValue(result));
  }
  const given = Object.keys(result as object);
  const unknown = given.find((key) => !(commonRoots as readonly string[]).includes(key));
  if (unknown !== undefined) fail(`{${unknown}}`);
  return Object.fromEntries(given.map((key) => [key, (result as Record<string, unknown>)[key]]));
}

/** Whether `value` is a plain object. */
export function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
