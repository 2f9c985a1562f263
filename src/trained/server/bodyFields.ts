/** @file Fields of OpenAI's bodies: values that change nothing, and errors with the field's name. */
import { z } from 'zod';
import { didYouMean } from '../../hparams/index.js';
import { HttpError } from './httpError.js';

/** A value as messages have it. */
const shown = (value: unknown): string => {
  const text = jsonOf(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
};

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'nothing';
  } catch {
    // Writing is recursive, where parsing is not.
    return 'a value of too many levels';
  }
}

/** The error of a field. */
export const expected = (what: string) => ({
  error: ({ input }: { readonly input?: unknown }) => `expected ${what}, got ${shown(input)}`,
});

/** A field of OpenAI's that only has the values that change nothing. */
export const only = (...values: readonly (number | boolean | string)[]) =>
  z.literal([...values], expected(`${shown(values[0])}, as others are not supported`)).optional();

/** Makes a schema once for each server's limits: making and compiling one takes 5 ms, which a small model draws several tokens in. */
export function schemaOf<L extends object, S>(make: (limits: L) => S): (limits: L) => S {
  const made = new WeakMap<L, S>();
  return (limits) => {
    const schema = made.get(limits) ?? make(limits);
    made.set(limits, schema);
    return schema;
  };
}

/** Whether a value is neutral: clients send null, {} and [] for fields that their users leave out. */
function isEmpty(value: unknown): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** The fields of an object that are not neutral. */
export const filled = (object: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => !isEmpty(value)));

/**
 * The fields of a body.
 *
 * @param required the field that a request is about, which null and [] do not leave out.
 * @throws HttpError 400 with the field's name
 */
export function checkedFields<S extends z.ZodRawShape>(
  body: unknown,
  schema: z.ZodObject<S>,
  required: string & keyof S,
): z.output<z.ZodObject<S>> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new HttpError(400, `The body: expected a JSON object, got ${shown(body)}.`);
  const names = Object.keys(schema.shape);
  const { [required]: asked } = body as Readonly<Record<string, unknown>>;
  const fields = { ...filled(body), ...(asked !== undefined && { [required]: asked }) };
  const unknown = Object.keys(fields).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const message = `${shown(unknown)} is not supported.${didYouMean(unknown, names)} The fields are: ${names.join(', ')}.`;
    throw new HttpError(400, message, { param: unknown });
  }
  const checked = schema.safeParse(fields);
  if (checked.success) return checked.data;
  const { path, message } = checked.error.issues[0]!;
  throw new HttpError(400, `${path.join('.')}: ${message}.`, { param: String(path[0]) });
}
