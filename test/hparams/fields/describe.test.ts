/** @file Schemas and values in words, at the bounds, depths and widths where the words change. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  describeFor,
  describeSchema,
  showLong,
  showValue,
  withArticle,
} from '../../../src/hparams/fields/describe.js';
import { Configurable, instance } from '../../../src/hparams/index.js';

const endless: z.ZodType = z.lazy(() => z.array(endless));

test.each<[z.ZodType, string]>([
  [z.number(), 'a number'],
  [z.int(), 'an integer'],
  [z.bigint().min(2n), 'a big integer at least 2'],
  [z.number().nonnegative(), 'a non-negative number'],
  [z.int().positive(), 'a positive integer'],
  [z.int().negative(), 'a negative integer'],
  [z.int().nonpositive(), 'a non-positive integer'],
  [z.number().min(-1), 'a number at least -1'],
  [z.number().gt(1).lt(2), 'a number above 1 and below 2'],
  [z.number().gt(1).max(2), 'a number above 1 and at most 2'],
  [z.number().min(0).max(0), 'a number from 0 to 0'],
  [z.number().min(0).lt(1), 'a non-negative number below 1'],
  [z.number().min(-1).lt(0), 'a number at least -1 and below 0'],
  [z.int().min(1).max(3).multipleOf(2), 'an integer from 1 to 3 that is a multiple of 2'],
  [z.int().multipleOf(8).min(1), 'an integer at least 1 that is a multiple of 8'],
  [z.number().min(1).min(2), 'a number at least 2'],
  [z.string(), 'a string'],
  [z.string().min(1), 'a non-empty string'],
  [z.string().min(2), 'a string of length at least 2'],
  [z.string().max(3), 'a string of length at most 3'],
  [z.string().min(2).max(3), 'a string of length 2 to 3'],
  [z.string().length(3), 'a string of length 3'],
  [z.string().regex(/^a$/), 'a string like /^a$/'],
  [z.email(), 'a string in email form'],
  [z.boolean(), 'true or false'],
  [z.literal(1), '1'],
  [z.literal([1, 'a', null]), "one of 1, 'a', null"],
  [z.enum(['a', 'b']), "one of 'a', 'b'"],
  [z.array(z.int().positive()).min(1), 'an array of length at least 1 of positive integers'],
  [z.array(z.number().min(2)), 'an array of numbers at least 2'],
  [z.array(z.union([z.int(), z.string()])), 'an array of (an integer or a string)'],
  [z.array(z.boolean()), 'an array of (true or false)'],
  [z.array(z.any()), 'an array of anything'],
  [z.tuple([z.int(), z.string()]), '[an integer, a string]'],
  [z.record(z.string(), z.number()), 'a record of numbers'],
  [z.object({ a: z.int(), b: z.int() }), 'an object with a, b'],
  [z.object({}), 'an object with no keys'],
  [z.union([z.int(), z.number().int(), z.string()]), 'an integer or a string'],
  [z.string().transform(Number), 'a string'],
  [z.map(z.string(), z.int()), 'a Map to integers'],
  [z.set(z.array(z.int())), 'a Set of arrays of integers'],
  [z.date(), 'a Date'],
  [z.unknown(), 'anything'],
  [z.null(), 'null'],
  [z.custom(() => true), 'a valid value'],
  [z.int().nullable().default(1).describe('x'), 'an integer or null'],
  [z.int().optional(), 'an integer'],
  [instance(Configurable, null).nullable(), 'a Configurable config or null'],
  [endless, `an array of ${'arrays of '.repeat(4)}a value`],
])('%# is said', (schema, words) => {
  expect(describeSchema(schema)).toBe(words);
});

test('what is not finite is answered by that it must be', () => {
  expect(describeFor(z.number().min(0), Number.NaN)).toBe('a non-negative finite number');
  expect(describeFor(z.number().min(0), Number.POSITIVE_INFINITY)).toBe('a non-negative finite number');
  expect(describeFor(z.number().min(0), -1)).toBe('a non-negative number');
  expect(describeFor(z.number().min(0).max(1), Number.NaN)).toBe('a number from 0 to 1');
  expect([withArticle('AdamW'), withArticle('Sgd'), withArticle('ordinary')]).toEqual([
    ...['an AdamW', 'a Sgd', 'an ordinary'],
  ]);
});

class Shape extends Configurable.with({}) {}

test.each<[unknown, string]>([
  ["it's\n\\", "'it\\'s\\n\\\\'"],
  [-0, '-0'],
  [0, '0'],
  [Number.NaN, 'NaN'],
  [Number.NEGATIVE_INFINITY, '-Infinity'],
  [1e21, '1e+21'],
  [2 ** 53, '9007199254740992'],
  [5e-324, '5e-324'],
  [10n, '10n'],
  [undefined, 'undefined'],
  [null, 'null'],
  [Math.max, 'function max'],
  [
    (
      () => () =>
        0
    )(),
    'a function',
  ],
  [[], '[]'],
  [{}, '{}'],
  [[1, [2, [3, [4]]]], '[1, [2, [3, […]]]]'],
  [{ a: { b: { c: { d: 1 } } } }, '{a: {b: {c: {…}}}}'],
  [Object.assign(Object.create(null), { a: 1 }), '{a: 1}'],
  [new Set([1, 2]), 'Set [1, 2]'],
  [new Map([['a', [1]]]), "Map {'a' => [1]}"],
  [[[[new Set([1])]]], '[[[Set {…}]]]'],
  [new Date(0), 'Date(1970-01-01T00:00:00.000Z)'],
  [new Date(Number.NaN), 'Date(invalid)'],
  [/a/g, '/a/g'],
  [Shape.config(), 'a Shape config'],
  [new Error('x'), 'an Error'],
])('%# is shown', (value, text) => {
  expect(showValue(value)).toBe(text);
});

test('eighty characters are shown, and of more the first seventy-nine; a long text has all', () => {
  const quoted = (length: number) => `'${'x'.repeat(length - 2)}'`;
  expect(showValue('x'.repeat(78))).toBe(quoted(80));
  expect(showValue('x'.repeat(79))).toBe(`${quoted(82).slice(0, 79)}…`);
  expect(showLong('x'.repeat(999))).toBe(quoted(1001));
  const deep = { a: [{ b: [{ c: [1] }] }] };
  expect(showLong(deep)).toBe('{a: [{b: [{c: [1]}]}]}');
  expect(showLong(Array.from({ length: 99 }, () => 1)).length).toBe(99 * 3);
  const trap = {
    get a() {
      throw new Error('x');
    },
  };
  expect(showValue(trap)).toBe('a value that cannot be read');
});
