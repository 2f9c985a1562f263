/** @file Texts of flags by the schema that reads them: unions, lists, records, quotes, and the way back. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { registerClass } from '../../../src/hparams/fields/classNames.js';
import { Configurable, coerce, factory, formatLiteral, isEqual, sub } from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { messageOf } from '../support.js';

class Shape extends Configurable.with({ sides: z.int().default(4) }) {}
class Round extends Shape {}
registerClass(Shape, Round);

const record = z.record(z.string(), z.int());
const rows: [z.ZodType, string, unknown][] = [
  [z.int().nullable(), 'none', null],
  [z.int().nullable(), 'None', null],
  [z.string().nullable(), '"null"', 'null'],
  [z.string().nullable(), "'none'", 'none'],
  [z.enum(['none', 'mean']).nullable(), 'none', 'none'],
  [z.enum(['none', 'mean']).nullable(), 'null', null],
  [z.union([z.int(), z.null()]), 'none', null],
  [z.string(), ' a b ', ' a b '],
  [z.string(), '"a\\n\\u0041"', 'a\nA'],
  [z.string(), '"a" and "b"', '"a" and "b"'],
  [z.string(), "it's", "it's"],
  [z.string(), '[1, 2]', '[1, 2]'],
  [z.int(), '0xff_ff', 0xffff],
  [z.int(), ' 3 ', 3],
  [z.any(), '-Infinity', -Infinity],
  [z.bigint(), '1_000n', 1000n],
  [z.union([z.int(), z.string()]), '"3"', '3'],
  [z.union([z.boolean(), z.string()]), 'true', true],
  [z.union([z.string(), z.array(z.int())]), '1,2', '1,2'],
  [z.union([z.string(), z.array(z.int())]), '[1,2]', [1, 2]],
  [z.union([z.int(), z.array(z.int())]), '1,2', [1, 2]],
  [z.union([z.int(), z.array(z.int())]), '1', 1],
  [z.literal([1, '1']), '1', 1],
  [z.literal([1, '1']), '"1"', '1'],
  [z.array(z.string()), `["a, b", c d, 'e']`, ['a, b', 'c d', 'e']],
  [z.array(z.array(z.int())), '[[1, 2], []]', [[1, 2], []]],
  [z.array(z.array(z.int())), '[1,2],[3]', [[1, 2], [3]]],
  [z.array(z.any()), '[1, a, null, true]', [1, 'a', null, true]],
  [z.array(z.string()), '[1, null]', ['1', 'null']],
  [z.array(z.int().nullable()), '1,null', [1, null]],
  [z.tuple([z.int(), z.string()]).rest(z.boolean()), '[1, x, true]', [1, 'x', true]],
  [record, '{a: 1, "b c": 2}', { a: 1, 'b c': 2 }],
  [record, 'a:1,b:2', { a: 1, b: 2 }],
  [record, '{}', {}],
  [z.record(z.string(), z.any()), '{a: [1, {b: x}]}', { a: [1, { b: 'x' }] }],
  [z.object({ a: z.string(), b: z.int() }), '{a: 1, b: 2}', { a: '1', b: 2 }],
  [z.set(z.int()), '1,2', new Set([1, 2])],
  [z.string().pipe(z.coerce.number()), '7', '7'],
];

test.each(rows)('%# a text is read as the schema asks', (schema, text, value) => {
  expect(coerce(schema, text)).toStrictEqual(value);
});

test('names of classes stand for configs, in lists and records too', () => {
  const made = coerce(z.array(sub(Shape)), 'Round,Shape') as Shape[];
  expect(made.map(String)).toEqual(['[object Round config]', '[object Shape config]']);
  const named = coerce(z.record(z.string(), sub(Shape)), '{a: Round}') as Record<string, object>;
  expect(isEqual(named.a, Round.config())).toBe(true);
  expect(coerce(z.union([z.int(), sub(Shape)]), 'Round')).toHaveProperty('sides', 4);
});

test.each([
  [z.int(), '"3"', `expected an integer, got '"3"'`],
  [z.array(z.int()), '[1, 2', "expected an array of integers, got '[1, 2'"],
  [z.array(z.int()), '1, "2"', `expected an array of integers, got '1, "2"'`],
  [record, 'a=1', "expected a record of integers, got 'a=1'"],
  [record, 'a:x', "expected a record of integers, got 'a:x'"],
  [
    z.object({ a: z.int() }),
    '{constructor: 1}',
    "'constructor' is not allowed as a key.\n  {constructor: 1}\n   ^",
  ],
  [
    z.any(),
    '{a: {"__proto__": 1}}',
    `'__proto__' is not allowed as a key.\n  {a: {"__proto__": 1}}\n       ^`,
  ],
  [z.boolean(), '"true"', `expected true or false, got '"true"'`],
] as [z.ZodType, string, string][])('%# a text that does not fit is an error', (schema, text, message) => {
  expect(messageOf(() => coerce(schema, text))).toBe(message);
});

test('a text nested without end is no value, not an overflow', () => {
  const deep = '['.repeat(100_000);
  expect(coerce(z.any(), deep)).toBe(deep);
  expect(messageOf(() => coerce(z.array(z.any()), deep))).toContain('expected an array of anything');
});

const key = fc
  .string({ unit: 'binary' })
  .filter((text) => !['__proto__', 'constructor', 'prototype', ''].includes(text));

/** Schemas with values that they accept. */
const { typed } = fc.letrec<{ typed: { schema: z.ZodType; value: unknown } }>((tie) => {
  const leaf = fc.oneof(
    fc.integer().map((value) => ({ schema: z.int(), value })),
    fc
      .double()
      .map((value) => ({ schema: z.union([z.number(), z.nan(), z.literal([Infinity, -Infinity])]), value })),
    fc.boolean().map((value) => ({ schema: z.boolean(), value })),
    fc.bigInt().map((value) => ({ schema: z.bigint(), value })),
    fc.string({ unit: 'binary' }).map((value) => ({ schema: z.string(), value })),
    fc.constantFrom('null', 'none', '1', 'true', '"x"', "'", '[1]', ' ', '').map((value) => ({
      schema: z.union([z.int(), z.boolean(), z.string().nullable()]),
      value,
    })),
    fc.constant({ schema: z.string().nullable(), value: null }),
    fc
      .constantFrom('a', 'null', '1', 1, true)
      .map((value) => ({ schema: z.literal(['a', 'null', '1', 1, true]), value })),
    fc.date({ noInvalidDate: true }).map((value) => ({ schema: z.date(), value })),
  );
  const node = tie('typed') as fc.Arbitrary<{ schema: z.ZodType; value: unknown }>;
  return {
    typed: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(leaf, { maxLength: 4 }).map((items) => ({
        schema: z.tuple(items.map(({ schema }) => schema) as unknown as [z.ZodType]),
        value: items.map(({ value }) => value),
      })),
      node.map(({ schema, value }) => ({ schema: z.array(schema), value: [value, value] })),
      fc.tuple(key, node).map(([name, { schema, value }]) => ({
        schema: z.record(z.string(), schema),
        value: { [name]: value },
      })),
      node.map(({ schema, value }) => ({ schema: z.object({ a: schema }).strict(), value: { a: value } })),
      node.map(({ schema, value }) => ({ schema: schema.nullable().default(null), value })),
    ),
  };
});

test('what formatLiteral writes, coerce reads back, whatever the schema', () => {
  fc.assert(
    fc.property(typed, ({ schema, value }) => {
      expect(coerce(schema, formatLiteral(value))).toStrictEqual(value);
    }),
    { numRuns: runs(1000) },
  );
});

test('what has no text in a flag is an error', () => {
  expect(messageOf(() => formatLiteral([Shape.config()]))).toBe(
    'a Shape config cannot be written in a flag.',
  );
  expect(messageOf(() => formatLiteral(undefined))).toBe('undefined cannot be written in a flag.');
});

class Dense extends Configurable.with({
  features: z.int().positive(),
  name: z.string().default('dense'),
  shape: z.array(z.int()).default([]),
  inner: sub(Shape),
  more: z.array(sub(Shape)).default([]),
}) {}
registerClass(Dense);

test('a call of a class is a config with these values, in lists and in other calls too', () => {
  const read = (schema: z.ZodType, text: string) => coerce(schema, text);
  const same = (a: unknown, b: unknown) => expect(isEqual(a, b)).toBe(true);
  same(read(sub(Dense), 'Dense(features=3)'), Dense.config({ features: 3 }));
  same(
    read(
      sub(Dense),
      `Dense(features=3, shape=[1, 2], name="a, (b", inner=Round(sides=1), more=[Shape(sides=2), Round()])`,
    ),
    Dense.config({
      ...{ features: 3, shape: [1, 2], name: 'a, (b', inner: Round.config({ sides: 1 }) },
      more: [Shape.config({ sides: 2 }), Round.config()],
    }),
  );
  same(read(sub(Dense).nullable(), 'Dense()'), Dense.config());
  same(read(z.array(sub(Shape)), '[Shape(sides=2), Round]'), [Shape.config({ sides: 2 }), Round.config()]);
  same(read(z.array(sub(Shape)), 'Shape(sides=2),Round'), [Shape.config({ sides: 2 }), Round.config()]);
  same(read(factory(Shape), 'Round(sides=2)'), Round.partial({ sides: 2 }));
  // To what holds no config, it is a text.
  expect(read(z.array(z.string()), '[f(a, b), c]')).toEqual(['f(a, b)', 'c']);
  expect(read(z.array(z.string()), '[f(a, b]')).toEqual(['f(a', 'b']);
});

test.each([
  ['Dense(3)', 'Dense takes its values by name, as Dense(features=3).\n  Dense(3)\n        ^'],
  [
    'Dense(feature=3)',
    "Dense has no hyperparameter 'feature'. Did you mean 'features'?\n  Dense(feature=3)\n        ^",
  ],
  ['Dense(features=x)', "Dense.features: expected a positive integer, got 'x'"],
  ['Dense(inner=Shape(sides=x))', "Dense.inner: Shape.sides: expected an integer, got 'x'"],
  ['Dense(features=3', "Expected a comma or ')' here.\n  Dense(features=3\n                  ^"],
  ['Dens(features=3)', "expected a Dense config, got 'Dens(features=3)'. Did you mean 'Dense'?"],
])('the call %s points at its fault', (text, problem) => {
  expect(messageOf(() => coerce(sub(Dense), text))).toBe(problem);
});
