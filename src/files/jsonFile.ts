/** @file JSON files that other programs may have changed: read whole, and checked against a schema. */
import type { z } from 'zod';
import { readRegularFile } from './read.js';

/**
 * The value in a JSON file.
 *
 * @throws Error with one line that says which part is wrong: `runs[1]: Invalid input: expected object, received null`; the
 *   system's error where the file can't be read.
 */
export function readJsonFile<T>(path: string, schema: z.ZodType<T>): T {
  const text = readRegularFile(path).toString();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error(oneLine((cause as Error).message), { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first, ...others] = parsed.error.issues;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  throw new Error(oneLine(`${placeOf(first!.path)}${first!.message}${more}`), { cause: parsed.error });
}

/** `runs[1].name: `; nothing for the whole value. */
function placeOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return steps.length === 0 ? '' : `${steps.join('').replace(/^\./, '')}: `;
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');
