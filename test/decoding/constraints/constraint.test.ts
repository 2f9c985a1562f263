/** @file Texts under constraints: a random model's fit, and of given texts those are allowed that fit. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type ConstrainedText, isAllowed } from '../../../src/decoding/constraints/index.js';
import { type Constraint, Constraints } from '../../../src/decoding/index.js';
import { draw, runs, title } from '../../faults/campaign.js';
import { randomPattern, randomSchema } from './randomConstraints.js';
import { constraints, fits, written } from './randomTexts.js';

const schemaOf = (jsonSchema: object): Constraint => ({
  jsonSchema: jsonSchema as { [name: string]: never },
});

test(title('texts under regular expressions match them'), async () => {
  let whole = 0;
  for (const [i, pattern] of draw(randomPattern, runs(2000, 16), 1).entries()) {
    const text = await written({ regex: pattern }, i, 40);
    whole += text === null ? 0 : 1;
    if (text !== null) expect(text).toMatch(new RegExp(`^(?:${pattern})$`, 'u'));
  }
  expect(whole).toBeGreaterThan(6);
});

test(title('a text fits a regular expression where JavaScript says so'), () => {
  const texts = fc.array(fc.constantFrom('a', 'b', 'c', '1', ' ', 'é', '€', '😀', '\n'), { maxLength: 6 });
  for (const [i, pattern] of draw(randomPattern, runs(2000, 16), 2).entries())
    for (const characters of draw(texts, 8, i)) {
      const text = characters.join('');
      expect([pattern, text, fits({ regex: pattern }, text)]).toEqual([
        ...[pattern, text],
        new RegExp(`^(?:${pattern})$`, 'u').test(text),
      ]);
    }
});

test(title('texts under JSON schemas are values of them'), async () => {
  let whole = 0;
  for (const [i, schema] of draw(randomSchema, runs(2000, 16), 3).entries()) {
    const text = await written(schemaOf(schema), i);
    if (text === null) continue;
    whole++;
    const checked = z.fromJSONSchema(schema as never).safeParse(JSON.parse(text));
    expect([schema, text, checked.error?.message]).toEqual([schema, text, undefined]);
  }
  expect(whole).toBeGreaterThan(6);
});

test(title('numbers are those within their bounds'), () => {
  const bound = fc.oneof(
    fc.integer({ min: -1200, max: 1200 }),
    fc.integer({ min: -500, max: 500 }).map((n) => n / 8),
  );
  const cases = fc.record({ a: bound, b: bound, isOpen: fc.boolean(), integer: fc.boolean() });
  for (const { a, b, isOpen, integer } of draw(cases, runs(1000, 16), 4)) {
    const [least, most] = [Math.min(a, b), Math.max(a, b) + 1];
    const low = isOpen ? { exclusiveMinimum: least } : { minimum: least };
    const schema = { type: integer ? 'integer' : 'number', ...low, maximum: most };
    const numbers = [least, most, least - 1, most + 1, (least + most) / 2, least + 0.125, most - 0.125, 0];
    for (const number of numbers.filter((each) => !integer || Number.isInteger(each))) {
      const isWithin = number <= most && (isOpen ? number > least : number >= least);
      expect([schema, number, fits(schemaOf(schema), String(number))]).toEqual([schema, number, isWithin]);
    }
  }
});

test('a grammar has rules that name themselves', async () => {
  const grammar = `# sums
root  ::= term ([+*] term)*
term  ::= digits | "(" root ")" |
          'x'{2,3}
digits ::= [1-9] [0-9]?`;
  for (let seed = 0; seed < 8; seed++) {
    const text = await written({ grammar }, seed, 60);
    const value = text === null ? 1 : Function(`"use strict"; return ${text.replaceAll(/x+/g, '7')};`)();
    expect(value).toBeGreaterThan(0);
  }
  expect(['xx+(1*(23))', 'x', '1+', '(1'].map((text) => fits({ grammar }, text))).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

test('any object of JSON, however deep', async () => {
  for (let seed = 0; seed < 4; seed++) {
    const text = await written({ json: 'object' }, seed);
    if (text !== null) expect(typeof JSON.parse(text)).toBe('object');
  }
  const deep = `{"a": ${'['.repeat(200)}{}${']'.repeat(200)}}`;
  expect(
    [deep, `${deep}]`, '[]', '{"a":1,}', '{"é\\u00e9€":[1.5e-3,true,null]}'].map((text) =>
      fits({ json: 'object' }, text),
    ),
  ).toEqual([...[true, false, false, false, true]]);
});

test('strings have escapes of characters, none of surrogates', () => {
  const yes = ['\\u00e9', '\\ud7ff', '\\uD000', '\\ue000', '😀', '\\n'];
  const no = ['\\ud800', '\\uDFFF', '\\ud83d\\ude00', '\\u00g0', '\\u00e', '\\x'];
  const isFit = (inside: string): boolean => fits(schemaOf({ type: 'string' }), `"${inside}"`);
  expect(yes.filter((inside) => !isFit(inside))).toEqual([]);
  expect(no.filter(isFit)).toEqual([]);
});

test('a text that may end has other tokens alone while no end may be drawn, and the end where there are none', () => {
  const tokens = ['a', 'b'].map((text) => new TextEncoder().encode(text));
  const END = 2;
  const begun = new Constraints(3, (id) => tokens[id], new Set([END])).compile({ regex: 'ab?' }).begin();
  const allowed = (text: ConstrainedText, mayEnd: boolean): number[] =>
    [0, 1, END].filter((id) => isAllowed(text.allowed(mayEnd), id));
  const [some, whole] = [begun.with(0), begun.with(0).with(1)];
  expect([begun, some, whole].map((text) => allowed(text, true))).toEqual([[0], [1, END], [END]]);
  expect([begun, some, whole].map((text) => allowed(text, false))).toEqual([[0], [1], [END]]);
});

test('objects have their properties in order, others where they are allowed', () => {
  const properties = { a: { type: 'integer' }, b: { type: 'string' }, c: { const: null } };
  const schema = { type: 'object', properties, required: ['b'], additionalProperties: { type: 'boolean' } };
  const yes = ['{"b":""}', '{"a":1,"b":"x","c":null}', '{ "b": "" ,\n"aa":true,"d":false}'];
  const no = ['{}', '{"b":"","a":1}', '{"b":"","b":true}', '{"b":"","d":1}', '{"a":1}', '{"b":"",}'];
  expect(yes.map((text) => fits(schemaOf(schema), text))).toEqual([true, true, true]);
  expect(no.map((text) => fits(schemaOf(schema), text))).toEqual(no.map(() => false));
});

test('arrays have as many items as they may', () => {
  const schema = { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 3 };
  const texts = ['[1]', '[1,2]', '[1, 2, 3]', '[1,2,3,4]'];
  expect(texts.map((text) => fits(schemaOf(schema), text))).toEqual([false, true, true, false]);
});

test('schemas refer to themselves', () => {
  const node = {
    type: 'object',
    properties: { v: { type: 'integer' }, next: { $ref: '#/$defs/node' } },
    required: ['v'],
  };
  const schema = { $defs: { node }, $ref: '#/$defs/node' };
  expect(fits(schemaOf(schema), '{"v":1,"next":{"v":2,"next":{"v":3}}}')).toBe(true);
  expect(fits(schemaOf(schema), '{"v":1,"next":{}}')).toBe(false);
});

test('values stand between tags, each by the definitions of its own schema', () => {
  const tag = (name: string, type: string) => ({
    ...{ begin: `<${name}>`, end: `</${name}>` },
    jsonSchema: { $defs: { x: { type } }, type: 'array', items: { $ref: '#/$defs/x' } },
  });
  const tags = [tag('a', 'integer'), tag('b', 'boolean')];
  const [one, several] = [{ tags }, { tags, separator: '; ' }];
  const texts = ['<a>[1, 2]</a>', '<b>[true]</b>', '<a>[1]</a>; <b>[]</b>; <a>[]</a>'];
  expect(texts.map((text) => fits(one, text))).toEqual([true, true, false]);
  expect(texts.map((text) => fits(several, text))).toEqual([true, true, true]);
  const bad = ['', '<a>[true]</a>', '<b>[1]</b>', '<a>[1]</b>', '<a>[1]</a><b>[]</b>', '<a>[1]</a>; '];
  expect(bad.map((text) => fits(several, text))).toEqual(bad.map(() => false));
});

const nested = (levels: number, inner: object): object =>
  Array.from({ length: levels }).reduce<object>((items) => ({ type: 'array', items }), inner);

const hostile: readonly (readonly [Constraint, string])[] = [
  [
    { regex: '(((a{1,100}){1,100}){1,100}){1,100}b|(.{0,300}.{0,300}){0,300}' },
    'a text may be at more than 2048 places of it at once: it is too ambiguous.',
  ],
  [{ regex: '[ab]{100000}' }, 'it has more than 32768 states; repetitions with high counts are costly.'],
  [{ regex: 'a{9}'.repeat(100_000) }, 'the regular expression has 400000 characters, of at most 131072.'],
  [{ regex: '('.repeat(5000) }, 'the regular expression is nested more than 128 levels deep.'],
  [{ grammar: `root ::= ${'('.repeat(5000)}` }, 'the grammar is nested more than 128 levels deep.'],
  [
    { grammar: 'root ::= "" a\na ::= b* root "x" | "y"\nb ::= "z"?' },
    "the rule 'root' begins with itself: write the repetition as (…)*.",
  ],
  [{ grammar: 'root ::= "a" root' }, 'no text fits it.'],
  [{ grammar: 'root ::= "a" b' }, "the grammar lacks the rule 'b'."],
  [schemaOf(nested(500, { type: 'null' })), 'the schema is nested more than 128 levels deep.'],
  [
    schemaOf({ type: 'string', maxLength: 1e9 }),
    'the schema counts to 1000000000, and an automaton has 32768 states at most.',
  ],
  [schemaOf({ $ref: '#' }), 'no text fits it.'],
  [
    schemaOf({ $ref: '#/$defs/x' }),
    `the schema refers to "#/$defs/x", which is not in the schema: expected '#/…'.`,
  ],
  [
    schemaOf({ type: 'integer', multipleOf: 3 }),
    "the schema has 'multipleOf', which is not supported there: it may have type, minimum, maximum, exclusiveMinimum, exclusiveMaximum.",
  ],
  [
    schemaOf({ oneOf: [{ type: 'integer' }, { type: 'number' }] }),
    'the schema has oneOf whose schemas differ neither in their types nor in a property that is constant: use anyOf.',
  ],
  [
    { regex: '(?=a)' },
    'the regular expression looks around or sets flags within a group, which is not supported, at character 3.',
  ],
  [{ regex: 'a**' }, "the regular expression repeats nothing by '*', at character 4."],
  [
    { regex: '(a$)b' },
    'the regular expression has an anchor elsewhere than at the ends of the whole, at character 4.',
  ],
];

test.each(hostile)('a constraint that is no good has an error that says why: %#', (constraint, message) => {
  expect(() => constraints.compile(constraint)).toThrow(`constraint: ${message}`);
});

/** Random words of letters and digits, all different. */
const words = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => (i * 7919 + 123_457).toString(36));

test('many values are read at one place, by their beginnings', () => {
  const all = words(5000);
  const schema = schemaOf({ enum: all });
  expect(all.slice(0, 20).every((word) => fits(schema, JSON.stringify(word)))).toBe(true);
  expect([all[0]!.slice(1), `${all[0]}0`].some((word) => fits(schema, JSON.stringify(word)))).toBe(false);
  expect(fits(schemaOf({ enum: ['ab', 'a', 'abc', 'b'] }), '"ab"')).toBe(true);
});

test('names of properties are short where others are allowed beside them', () => {
  const named = (additionalProperties: boolean) =>
    schemaOf({ type: 'object', properties: { ['a'.repeat(9000)]: {} }, additionalProperties });
  expect(() => constraints.compile(named(true))).toThrow(
    'constraint: the schema has a property whose name has 9000 characters, of at most 512 where others are allowed.',
  );
  expect(() => constraints.compile(named(false))).not.toThrow();
});

test('a text whose every token takes long to find is given up', () => {
  // All texts of nine letters a and b.
  const tokens = Array.from({ length: 512 }, (_, i) =>
    Uint8Array.from({ length: 9 }, (_, at) => 97 + ((i >> at) & 1)),
  );
  const vocabulary = new Constraints(tokens.length, (id) => tokens[id], new Set());
  /** Draws until the end, or an error. */
  const drawn = (regex: string): number => {
    let text = vocabulary.compile({ regex }).begin();
    for (let i = 0; i < 50; i++) {
      text.allowed();
      text = text.with((i * 37) % tokens.length);
    }
    return 50;
  };
  expect(drawn('[ab]*')).toBe(50);
  expect(drawn('([ab]?){500}')).toBe(50);
  expect(() => drawn('[ab]*a[ab]{900}')).toThrow(
    'constraint: its next tokens take too long to find: texts may be at too many places of it.',
  );
});

test('texts of exponential length are followed as far as they come', () => {
  const levels = Array.from({ length: 60 }, (_, i) => i);
  const rules = levels.map(
    (i) => `${i === 0 ? 'root' : `r${i}`} ::= ${i === 59 ? '"a"' : `r${i + 1} r${i + 1}`}`,
  );
  const reference = (i: number) => ({ $ref: `#/$defs/d${i}` });
  const schema = schemaOf({
    ...reference(0),
    $defs: Object.fromEntries(
      levels.map((i) => [
        `d${i}`,
        i === 59 ? { type: 'null' } : { type: 'array', items: reference(i + 1), minItems: 2, maxItems: 50 },
      ]),
    ),
  });
  const bytes = new Constraints(257, (id) => (id < 256 ? Uint8Array.of(id) : undefined), new Set([256]));
  for (const [constraint, begun, wrong] of [
    [{ grammar: rules.join('\n') }, 'a'.repeat(3000), 'b'],
    [schema, `${'['.repeat(59)}null`, '}'],
  ] as const) {
    let text = bytes.compile(constraint).begin();
    for (const byte of Buffer.from(begun)) text = text.with(byte);
    expect(isAllowed(text.allowed(), begun.charCodeAt(0))).toBe(begun.startsWith('a'));
    expect(isAllowed(text.allowed(), wrong.charCodeAt(0))).toBe(false);
    expect(isAllowed(text.allowed(), 256)).toBe(false);
  }
});

test('expressions that are costly for others are none here', async () => {
  for (const regex of ['(a|a)*b', '((a+)+)+b', '(a*)*b', '(a|aa)+b', '.*.*.*.*.*=.*']) {
    expect(fits({ regex }, `${'a'.repeat(300)}b`)).toBe(!regex.includes('='));
    expect(fits({ regex }, 'a'.repeat(300))).toBe(false);
  }
});
