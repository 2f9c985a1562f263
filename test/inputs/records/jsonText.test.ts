/** @file JSON with integers of any size, among strings and numbers that look like them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseJson } from '../../../src/inputs/records/jsonText.js';

/** JSON of a value with bigints. */
function jsonOf(value: unknown, space: string): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map((each) => jsonOf(each, space)).join(`${space},${space}`)}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([key, each]) => `${JSON.stringify(key)}${space}:${space}${jsonOf(each, space)}`,
  );
  return `{${space}${entries.join(',')}}`;
}

const text = fc.string({
  unit: fc.constantFrom('@', '"', '\\', '7', '12345678901234567', '-', '.', 'e', 'ü', ':'),
});
const large = fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n });
const leaf = fc.oneof(
  text,
  large,
  large.map((n) => -n),
  fc.integer(),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    // JSON writes those in between as integers.
    .filter((x) => !Number.isInteger(x) || Number.isSafeInteger(x) || Math.abs(x) >= 1e21),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(2 ** 53 - 1, 1704067200000000, 1e300, 0.1234567890123456),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(text, fc.constant('__proto__')), tie('tree'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

test('any value comes back', () => {
  fc.assert(
    fc.property(tree, fc.constantFrom('', ' ', '\n\t'), (value, space) => {
      // -0 is 0 in JSON.
      const wanted = fc.stringify(value).replaceAll(/-0(?![\d.])/g, '0');
      expect(fc.stringify(parseJson(jsonOf(value, space))).replaceAll(/-0(?![\d.])/g, '0')).toBe(wanted);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['9007199254740991', 9007199254740991],
  ['9007199254740992', 9007199254740992n],
  ['[-9007199254740993, 1e22, 12345678901234567.0]', [-9007199254740993n, 1e22, 12345678901234568]],
  [
    '{"@id": 9007199254740993, "b": "@9007199254740993", "c": "\\u004012", "d": "\\\\"}',
    { '@id': 9007199254740993n, b: '@9007199254740993', c: '@12', d: '\\' },
  ],
  ['1e0000000000000000001', 10],
])('%s', (json, value) => {
  expect(parseJson(json)).toEqual(value);
});

test('deep nesting and long strings are no trouble, and errors are those of JSON.parse', () => {
  const depth = 50_000;
  let inner = parseJson(`${'['.repeat(depth)}9007199254740993${']'.repeat(depth)}`);
  while (Array.isArray(inner)) inner = inner[0];
  expect(inner).toBe(9007199254740993n);
  const long = 'a\\"'.repeat(1_000_000);
  expect(parseJson(`["${long}", 9007199254740993]`)).toEqual([JSON.parse(`"${long}"`), 9007199254740993n]);
  for (const json of [
    '[9007199254740993,, 1]',
    '{"a": 9007199254740993, "b": "x',
    '9007199254740993x',
    '09007199254740993',
  ]) {
    const error = (parse: (text: string) => unknown) => {
      try {
        return parse(json);
      } catch (caught) {
        return String(caught);
      }
    };
    expect(error(parseJson)).toBe(error(JSON.parse));
  }
});
