/** @file Fields by which requests constrain texts: JSON schemas, and vLLM's regular expressions and grammars. */
import { z } from 'zod';
import type { GenerateOptions } from '../generation.js';
import { expected } from './bodyFields.js';
import { HttpError } from './httpError.js';

/** Levels of a schema as JSON, which are more than those of its types. */
const MOST_LEVELS = 500;

type Json = z.core.util.JSONType;

/** Whether a value is true, false, or an object of few levels, found without recursion. */
function isSchema(value: unknown): boolean {
  const isNested = (each: unknown) => typeof each === 'object' && each !== null;
  let level = [value].filter(isNested);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MOST_LEVELS) return false;
    level = level.flatMap((each) => Object.values(each as object).filter(isNested));
  }
  return typeof value === 'boolean' || (isNested(value) && !Array.isArray(value));
}

/** A JSON schema. */
export const schemaField = z.custom<boolean | { [name: string]: Json }>(
  isSchema,
  expected(`a JSON schema of at most ${MOST_LEVELS} levels`),
);
const text = z.string(expected('a text'));

export const constraintFields = {
  guided_json: schemaField.optional(),
  guided_regex: text.optional(),
  guided_grammar: text.optional(),
};

/** Constraints of a request by the fields that ask for them. */
export type ConstraintsByField = Readonly<Record<string, GenerateOptions['constraint']>>;

/**
 * The constraint of a request, and the field that asks for it.
 *
 * @param others that the request has besides these fields.
 * @throws HttpError 400 for several
 */
export function oneConstraint(
  fields: z.output<z.ZodObject<typeof constraintFields>>,
  others: ConstraintsByField = {},
): { readonly constraint?: GenerateOptions['constraint']; readonly field?: string } {
  const { guided_json: jsonSchema, guided_regex: regex, guided_grammar: grammar } = fields;
  const all: ConstraintsByField = {
    ...others,
    guided_json: jsonSchema === undefined ? undefined : { jsonSchema },
    guided_regex: regex === undefined ? undefined : { regex },
    guided_grammar: grammar === undefined ? undefined : { grammar },
  };
  const given = Object.entries(all).filter(([, constraint]) => constraint !== undefined);
  const [[field, constraint] = []] = given;
  if (given.length <= 1) return field === undefined ? {} : { field, constraint };
  const names = ['response_format', 'tool_choice', ...Object.keys(constraintFields)];
  throw new HttpError(400, `expected one of ${names.join(', ')}.`, { param: given[1]![0] });
}
