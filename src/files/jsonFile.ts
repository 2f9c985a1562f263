/** @file JSON that other programs may have changed: parsed, and checked against a schema. */
import type { z } from 'zod';
import { readRegularFile } from './read.js';

/** The value in a JSON file. @throws as `parseJson`; the system's error where the file can't be read */
export function readJsonFile<T>(path: string, schema: z.ZodType<T>): T {
  return parseJson(readRegularFile(path).toString(), schema);
}

/**
 * The value of a JSON text.
 *
 * @throws Error with one line that names the invalid part: `runs[1]: Invalid input: expected object, received null`.
 */
export function parseJson<T>(text: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(oneLine((cause as Error).message), { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Error(schemaProblem(parsed.error), { cause: parsed.error });
}

/** The first part of a value that is wrong, in one line, and how many more are. */
export function schemaProblem({ issues: [first, ...others] }: z.ZodError): string {
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return oneLine(`${placeOf(first!.path)}${first!.message}${more}`);
}

/** `runs[1].name: `; nothing for the whole value. */
function placeOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.length === 0 ? '' : `${steps.join('').replace(/^\./, '')}: `;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');
