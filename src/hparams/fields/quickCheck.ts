/** @file Checks of plain values without zod: most writes are of numbers, strings and booleans that fit. */
import type { z } from 'zod';
import { type Check, type Definition, definitionOf } from './schema.js';

/** Whether a value surely fits; false says nothing. */
export type QuickCheck = (value: unknown) => boolean;

/** A quick check for a schema of plain values; undefined for any other schema, where only zod knows. */
export function quickCheckOf(schema: z.ZodType): QuickCheck | undefined {
  const definition = definitionOf(schema);
  if (definition.type === 'optional') return quickCheckOf(definition.innerType!);
  if (definition.type === 'nullable') {
    const inner = quickCheckOf(definition.innerType!);
    return inner && ((value) => value === null || inner(value));
  }
  if (definition.coerce === true) return undefined;
  const checks = [
    ...('check' in definition ? [definition as unknown as Check] : []),
    ...(definition.checks ?? []).map((check) => check._zod.def),
  ];
  if (definition.type === 'number') return numberCheck(checks);
  if (checks.length > 0) return undefined;
  return plainCheck(definition);
}

function plainCheck({ type, entries, values }: Definition): QuickCheck | undefined {
  if (type === 'string' || type === 'boolean') return (value) => typeof value === type;
  if (type !== 'enum' && type !== 'literal') return undefined;
  const accepted = new Set<unknown>(type === 'enum' ? Object.values(entries!) : values);
  // A TypeScript enum of numbers lists its names among the values.
  return (value) => typeof value === 'string' && accepted.has(value) && !isNameOfNumber(entries, value);
}

function isNameOfNumber(entries: Definition['entries'], name: string): boolean {
  return typeof entries?.[name] === 'number';
}

function numberCheck(checks: readonly Check[]): QuickCheck | undefined {
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  let isWhole = false;
  const excluded = new Set<number>();
  for (const { check, value, inclusive, format } of checks) {
    const isBound = (check === 'greater_than' || check === 'less_than') && typeof value === 'number';
    if (isBound && inclusive !== true) excluded.add(value);
    if (isBound && check === 'greater_than') low = Math.max(low, value);
    else if (isBound) high = Math.min(high, value);
    else if (check === 'number_format' && format === 'safeint') isWhole = true;
    else return undefined;
  }
  return (value) =>
    typeof value === 'number' &&
    value >= low &&
    value <= high &&
    Number.isFinite(value) &&
    (!isWhole || Number.isSafeInteger(value)) &&
    !excluded.has(value);
}
