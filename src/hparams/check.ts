/** @file What is wrong with a value as a field's value, in words. */
import type { z } from 'zod';
import { describeSchema, showValue } from './describe.js';
import { acceptsUndefined, type FieldInfo } from './fields.js';
import { partSchema } from './schema.js';

/** What is wrong with `value` as the field's value, beginning with the field's name, or undefined. */
export function problemOf(field: FieldInfo, value: unknown): string | undefined {
  if (value === undefined && !acceptsUndefined(field)) {
    const hint = field.default.kind === 'none' ? '' : '; delete the field to get its default back';
    return `${field.name}: expected ${describeSchema(field.check)}, got undefined${hint}`;
  }
  const result = field.check.safeParse(value);
  if (result.success) return undefined;
  return result.error.issues.map((issue) => issueText(field, value, issue as Issue)).join('; ');
}

interface Issue {
  code: string;
  path: PropertyKey[];
  message: string;
  keys?: string[];
}

function issueText(field: FieldInfo, value: unknown, issue: Issue): string {
  let schema: z.ZodType | undefined = field.check;
  let part: unknown = value;
  let path = field.name;
  for (const key of issue.path) {
    schema = schema && partSchema(schema, key);
    part = (part as Record<PropertyKey, unknown> | null | undefined)?.[key];
    path +=
      typeof key === 'number'
        ? `[${key}]`
        : /^[\w$]+$/.test(String(key))
          ? `.${String(key)}`
          : `['${String(key)}']`;
  }
  // A refinement's own words say more than its schema does.
  if (issue.code === 'custom' && issue.message !== 'Invalid input') {
    return `${path}: ${issue.message}, got ${showValue(part)}`;
  }
  if (issue.code === 'unrecognized_keys') return `${path}: ${issue.message}`;
  return `${path}: expected ${schema === undefined ? issue.message : describeSchema(schema)}, got ${showValue(part)}`;
}
