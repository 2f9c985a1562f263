/** @file Functions whose work counts when they return: a promise from one is refused by the function's name. */
import type { z } from 'zod';
import { ConfigError } from '../errors.js';
import { allSchemas, definitionOf } from './schema.js';

/** A function returned a promise where none can be waited for. */
export class PromiseError extends ConfigError {}

/** @throws PromiseError where `result`, which `who` returned, is a promise; `why` says what waits for nobody. */
export function refusePromise(result: unknown, who: string, why: string, place?: string): void {
  if (!(result instanceof Promise)) return;
  // What it throws later has nobody to catch it, and would end the process.
  result.catch(() => {});
  throw new PromiseError(`${who} must not be async: ${why}.`, { place });
}

const guards = new WeakSet<object>();

/**
 * Makes the functions in `schema` throw a PromiseError where they return a promise: zod would let go of it, and what it
 * throws would end the process. `refinement` is what messages call a refinement.
 */
export function refuseAsync(schema: z.ZodType, refinement = 'a refinement'): void {
  const why = 'what it finds counts when it returns';
  for (const each of allSchemas(schema)) {
    const definition = definitionOf(each);
    guard(definition, 'fn', refinement, why);
    guard(definition, 'transform', 'a transform', 'what it gives counts when it returns');
    for (const { _zod: check } of definition.checks ?? []) {
      guard(check.def, 'tx', 'an overwrite', 'what it gives counts when it returns');
      if ('fn' in check.def) guard(check.def, 'fn', refinement, why);
      else if (check.def.check === 'custom') guard(check, 'check', refinement, why);
    }
  }
}

function guard(owner: object, key: string, who: string, why: string): void {
  const functions = owner as Record<string, unknown>;
  const inner = functions[key];
  if (typeof inner !== 'function' || guards.has(inner)) return;
  const guarded = (...values: unknown[]): unknown => {
    const result: unknown = inner(...values);
    refusePromise(result, who, why);
    return result;
  };
  guards.add(guarded);
  functions[key] = guarded;
}
