/** @file Validation of constants, with the source line that sets them. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { ConfigError, describeSchema, showValue } from '../hparams/index.js';

/**
 * Parses `value` by the schema.
 *
 * @throws ConfigError with the constant (`what`), the expectation, the value and the place (`where`).
 */
export function checkValue(
  schema: z.ZodType,
  value: unknown,
  what: () => string,
  where: () => string | undefined,
): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const own = result.error.issues.find(
    (issue) => issue.code === 'custom' && issue.message !== 'Invalid input',
  );
  const expected = own?.message ?? `expected ${describeSchema(schema)}`;
  throw new ConfigError(`${what()}: ${expected}, got ${showValue(value)}`, { place: where() });
}

const here = fileURLToPath(new URL('.', import.meta.url));

/** Place of the nearest caller outside of this folder and packages, as `experiments/lm.ts:41`, if there is one. */
export function placeOfCaller(): string | undefined {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const stack = new Error().stack ?? '';
  Error.stackTraceLimit = limit;
  for (const line of stack.split('\n').slice(1)) {
    const found = /\(?((?:file:\/\/)?\/[^()]*?|[A-Za-z]:\\[^()]*?):(\d+):\d+\)?$/.exec(line);
    if (!found) continue;
    const file = found[1]!.startsWith('file://') ? fileURLToPath(found[1]!.replace(/\?.*$/, '')) : found[1]!;
    if (file.startsWith(here) || file.includes('/node_modules/')) continue;
    return `${relative(process.cwd(), file)}:${found[2]}`;
  }
  return undefined;
}
