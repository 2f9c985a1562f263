/** @file Calls with literals, as --fiddler and --sweep take them, and errors that point at columns. */
import { expect, test } from 'vitest';
import { formatLiteral, parseCall, plainValue } from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

function read(text: string): unknown[] {
  const { name, arguments: given } = parseCall(text);
  return [
    name,
    ...given.map(({ name: key, value }) =>
      key === undefined ? plainValue(value) : [key, plainValue(value)],
    ),
  ];
}

test.each([
  ['f', ['f']],
  [' f ( ) ', ['f']],
  ['f(1, -2.5e3, 0x10, 1_000)', ['f', 1, -2500, 16, 1000]],
  [`f('a b', "c,)", word)`, ['f', 'a b', 'c,)', 'word']],
  ['f(true, null, "true", 12n)', ['f', true, null, 'true', 12n]],
  ['f([1, [2]], {a: 1, "b c": [x]})', ['f', [1, [2]], { a: 1, 'b c': ['x'] }]],
  ['f(1, factor=2, name = "x")', ['f', 1, ['factor', 2], ['name', 'x']]],
  ['f(g(1), x=a/b.G(y=[1, 2], z=h()))', ['f', 'g(1)', ['x', 'a/b.G(y=[1, 2], z=h())']]],
  ['f(path=a/b.txt)', ['f', ['path', 'a/b.txt']]],
])('%s', (text, expected) => {
  expect(read(text)).toEqual(expected);
});

test.each([
  ['f(', 'Expected a value here.', 2],
  ['f(1', "Expected a comma or ')' here.", 3],
  ['f(1,)', 'Expected a value here.', 4],
  ['f(factor=)', 'Expected a value here.', 9],
  ['f(a b)', "Expected a comma or ')' here.", 4],
  ['f(g(1)', "Expected a comma or ')' here.", 6],
  ['f(x=g(a b))', "Expected a comma or ')' here.", 8],
  ['f(1)(2)', 'Nothing can follow the call of f.', 4],
  ['f(*a)', 'Arguments cannot be spread with *.', 2],
  ['f(**a)', 'Arguments cannot be spread with *.', 2],
  ['f("a)', 'The quote is not closed.', 2],
  ['f(a=1, a=2)', "The argument 'a' is given twice.", 7],
  ['f(a=1, 2)', 'An argument without a name cannot follow one with a name.', 7],
  ['f(__proto__=1)', "'__proto__' is not allowed as a name.", 2],
  ['f({constructor: 1})', "'constructor' is not allowed as a key.", 3],
  ['a.f(1)', 'Nothing can follow the call of a.', 1],
  ['(1)', 'Expected the name of a function here.', 0],
])('%s points at its fault', (text, problem, column) => {
  expect(messageOf(() => parseCall(text))).toBe(`${problem}\n  ${text}\n  ${' '.repeat(column)}^`);
});

test('literals nest a hundred levels deep, read or written', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const value = plainValue(parseCall(`f(${nested(101)})`).arguments[0]!.value);
  expect(formatLiteral(value)).toBe(nested(101));
  expect(messageOf(() => parseCall(`f(${nested(102)})`))).toMatch(/^Literals may nest 100 levels deep\.\n/);
  expect(messageOf(() => formatLiteral([value]))).toBe('Literals may nest 100 levels deep.');
});
