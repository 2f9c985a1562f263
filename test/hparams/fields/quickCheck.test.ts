/** @file The checks that do without zod agree with it wherever they let a value pass. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { quickCheckOf } from '../../../src/hparams/fields/quickCheck.js';
import { runs } from '../../faults/campaign.js';

enum Level {
  Low,
  High = 7,
}
const schemas: Record<string, z.ZodType> = {
  number: z.number(),
  int: z.int(),
  positive: z.number().positive(),
  bounded: z.int().min(-3).max(5),
  open: z.number().gt(-3).lt(5),
  twice: z.number().min(1).gt(1).max(9).lt(7),
  step: z.number().multipleOf(2),
  int32: z.int32(),
  string: z.string(),
  long: z.string().min(3),
  trimmed: z.string().trim(),
  email: z.email(),
  boolean: z.boolean(),
  enum: z.enum(['a', 'b']),
  numbers: z.enum(Level),
  literal: z.literal(['a', 3, null]),
  nullable: z.int().nullable(),
  optional: z.string().optional(),
  refined: z.int().refine((value) => value > 2),
  coerced: z.coerce.number(),
  branded: z.int().brand('Size'),
  transformed: z.string().transform(Number),
  union: z.union([z.int(), z.string()]),
  defaulted: z.int().default(3),
};
const special = [
  -3,
  1,
  5,
  7,
  9,
  -0,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  '',
  'a',
  'b',
  'Low',
  'High',
];
const values = fc.oneof(
  fc.constantFrom<unknown>(...special, null, undefined, true, 3n),
  fc.integer({ min: -10, max: 10 }),
  fc.double(),
  fc.string({ maxLength: 4 }),
);

test.each(Object.entries(schemas))(
  '%s: what passes quickly is what zod lets pass unchanged',
  (_name, schema) => {
    const check = quickCheckOf(schema);
    fc.assert(
      fc.property(values, (value) => {
        if (check?.(value) !== true) return;
        expect(schema.safeParse(value)).toEqual({ success: true, data: value });
      }),
      { numRuns: runs(500) },
    );
  },
);

test('plain schemas are checked quickly, others by zod alone', () => {
  const quick = Object.keys(schemas).filter((name) => quickCheckOf(schemas[name]!) !== undefined);
  expect(quick).toEqual([
    'number',
    'int',
    'positive',
    'bounded',
    'open',
    'twice',
    'string',
    'boolean',
    'enum',
    'numbers',
    'literal',
    'nullable',
    'optional',
    'branded',
  ]);
  expect(['positive', 'bounded', 'string', 'enum'].map((name) => quickCheckOf(schemas[name]!)!(1))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
