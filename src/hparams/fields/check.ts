/** @file Problems with a field's value, in words. */
import type { z } from 'zod';
import { didYouMean } from '../../system/text/index.js';
import { PromiseError } from '../errors.js';
import { unsetCarriers, withoutCarriers } from '../nodes/carriers.js';
import { partsOf } from '../nodes/containers.js';
import { handlerOf } from '../nodes/containerTypes.js';
import { describeFor, describeSchema, showValue } from './describe.js';
import { acceptsUndefined, type FieldInfo } from './fields.js';
import { definitionOf, innermost, parse, partSchema } from './schema.js';

/** Parses `value` by `schema`. @throws PromiseError that names `label` if a function in the schema is async. */
export function parseWith(schema: z.ZodType, value: unknown, label: string): z.ZodSafeParseResult<unknown> {
  try {
    return parse(schema, value);
  } catch (error) {
    throw error instanceof PromiseError ? new PromiseError(`${label}: ${error.problem}`) : error;
  }
}

/** The problem of `value` as the field's value, beginning with the field's name, or undefined. */
export function problemOf(field: FieldInfo, value: unknown): string | undefined {
  if (value === undefined && !acceptsUndefined(field)) {
    const hint = field.default.kind === 'none' ? '' : '; delete the field to get its default back';
    return `${field.name}: expected ${describeSchema(field.check)}, got undefined${hint}`;
  }
  const plain = withoutCarriers(value);
  let result: z.ZodSafeParseResult<unknown>;
  try {
    result = parseWith(field.check, plain, field.name);
  } catch (error) {
    if (error instanceof PromiseError) return error.problem.replace(/\.$/, '');
    throw error;
  }
  if (result.success) return undefined;
  const issues = plain === value ? result.error.issues : besidesUnset(result.error.issues as Issue[], value);
  if (issues.length === 0) return undefined;
  return issues.map((issue) => issueText(field.name, field.check, plain, issue)).join('; ');
}

/** The issues that remain once every carrier without a value gets one that fits. */
function besidesUnset(issues: Issue[], value: unknown): Issue[] {
  const unset = unsetCarriers(value).map(({ steps }) =>
    steps.map((step) => (typeof step === 'object' ? step.key : step)),
  );
  const remains = (issue: Issue, prefix: PropertyKey[]): boolean => {
    const path = [...prefix, ...issue.path];
    if (unset.some((steps) => steps.every((step, i) => step === path[i]))) return false;
    const options = issue.code === 'invalid_union' ? (issue.errors ?? []) : [];
    return !options.some((option) => option.every((inner) => !remains(inner, path)));
  };
  return issues.filter((issue) => remains(issue, []));
}

interface Issue {
  code: string;
  path: PropertyKey[];
  message: string;
  keys?: string[];
  /** Issues by option of a union. */
  errors?: Issue[][];
}

function partAt(value: unknown, key: PropertyKey): unknown {
  if (handlerOf(value) === undefined)
    return (value as Record<PropertyKey, unknown> | null | undefined)?.[key];
  return partsOf(value)!.find(([step]) => (typeof step === 'object' ? step.key : step) === key)?.[1];
}

/** The options of a union that `value` may be meant as: by its discriminator, if it has one and that is not in question. */
function optionsFor(schema: z.ZodType, value: unknown, asked?: PropertyKey): z.ZodType[] {
  const { options = [schema], discriminator } = definitionOf(innermost(schema));
  if (discriminator === undefined || discriminator === asked) return options;
  const given = partAt(value, discriminator);
  return options.filter((option) => partSchema(option, discriminator)!.safeParse(given).success);
}

/** An issue that zod has with `value`, which `label` names: `stages[2].rate: expected a number, got 'fast'`. */
export function issueText(
  label: string,
  check: z.ZodType,
  value: unknown,
  issue: Pick<Issue, 'code' | 'path' | 'message' | 'keys'>,
): string {
  let schemas = [check];
  let part: unknown = value;
  let path = label;
  for (const key of issue.path) {
    const options = schemas.flatMap((schema) => optionsFor(schema, part, key));
    schemas = options.flatMap((option) => partSchema(option, key) ?? []);
    part = partAt(part, key);
    path +=
      typeof key === 'number'
        ? `[${key}]`
        : /^[\w$]+$/.test(String(key))
          ? `.${String(key)}`
          : `['${String(key)}']`;
  }
  // A refinement's own message is more specific than its schema's description.
  if (issue.code === 'custom' && issue.message !== 'Invalid input') {
    return `${path}: ${issue.message}, got ${showValue(part)}`;
  }
  if (issue.code === 'unrecognized_keys') {
    const objects = schemas.flatMap((schema) => optionsFor(schema, part));
    const known = objects.flatMap((object) => Object.keys(definitionOf(innermost(object)).shape ?? {}));
    const unknown = issue.keys!.map((key) => `no field '${key}'.${didYouMean(key, known)}`);
    return `${path}: ${unknown.join(' ')} The fields are: ${known.join(', ')}`;
  }
  const expected = new Set(schemas.map((schema) => describeFor(schema, part)));
  return `${path}: expected ${[...expected].join(' or ') || issue.message}, got ${showValue(part)}`;
}
