/** @file How functions of an experiment's file are called: what their parameters take, what they lack, what is too much. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { argumentsFor } from '../../src/cli/commandFunctions.js';
import { parametersOf } from '../../src/cli/parameters.js';
import { type Call, ConfigError, parseCall } from '../../src/hparams/index.js';

type Fn = (...values: any[]) => unknown;

const called = (fn: Fn, call: string | Call, leading = 1): unknown[] =>
  argumentsFor(
    { name: 'f', kind: undefined, fields: undefined, fn },
    typeof call === 'string' ? parseCall(call) : call,
    leading,
  );

const problem = (fn: Fn, call: string): string => {
  try {
    called(fn, call);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  return 'no error';
};

const one = (_configs: unknown, times: number) => times;
const two = (_configs: unknown, times: number, by = 2) => times * by;
const pattern = (_configs: unknown, { size, what = 'all' }: { size: number; what?: string }) => [size, what];
const mixed = (_configs: unknown, times: number, { size = 1, ...rest } = {} as Record<string, number>) => [
  times,
  size,
  rest,
];
const many = (_configs: unknown, ...sizes: number[]) => sizes;
const none = (_configs: unknown) => {};

test('arguments go to parameters by position and by name', () => {
  expect(called(one, 'f(3)')).toEqual([3]);
  expect(called(one, 'f(times=3)')).toEqual([3]);
  expect(called(two, 'f(3)')).toEqual([3]);
  expect(called(two, 'f(by=4, times=3)')).toEqual([3, 4]);
  expect(called(pattern, 'f(size=3)')).toEqual([{ size: 3 }]);
  expect(called(pattern, 'f({size: 3})')).toEqual([{ size: 3 }]);
  expect(called(pattern, 'f')).toEqual([{}]);
  expect(called(mixed, 'f(3)')).toEqual([3]);
  expect(called(mixed, 'f(3, size=4, other=5)')).toEqual([3, { size: 4, other: 5 }]);
  expect(called(many, 'f(1, 2, 3, 4)')).toEqual([1, 2, 3, 4]);
  expect(called(none, 'f')).toEqual([]);
});

test.each<[string, Fn, string, string]>([
  ['too few', one, 'f', "f needs the argument 'times'. It takes times.\n  f\n   ^"],
  ['too many', one, 'f(1, 2)', 'This is one argument too many for f. It takes times.\n  f(1, 2)\n       ^'],
  ['any at all', none, 'f(1)', 'This is one argument too many for f. It takes none.\n  f(1)\n    ^'],
  [
    'a misspelt name',
    one,
    'f(tims=1)',
    "f has no argument 'tims'. Did you mean 'times'? It takes times.\n  f(tims=1)\n    ^",
  ],
  [
    'an unknown name in a pattern',
    pattern,
    'f(sise=1)',
    "f has no argument 'sise'. Did you mean 'size'? It takes size, what.\n  f(sise=1)\n    ^",
  ],
  [
    'one twice',
    two,
    'f(1, times=2)',
    "The argument 'times' is given twice. It takes times, by.\n  f(1, times=2)\n       ^",
  ],
  ['a hole', two, 'f(by=2)', "f needs the argument 'times'. It takes times, by.\n  f(by=2)\n         ^"],
])('%s is an error', (_, fn, call, message) => expect(problem(fn, call)).toBe(message));

test('parameters are read whatever stands in their defaults', () => {
  const source = [
    [
      "(a, b = ')(', c = [1, (2)], { d = {}, 'e-f': g = 1 } = {}, ...h) => {}",
      ['a', 'b', 'c', undefined, '...h'],
    ],
    ['async function named(a /* , b */, c) { return arguments.length }', undefined],
    ['async function named(a /* , b */, // )\n c) { }', ['a', 'c']],
    ['x => x', ['x']],
    ['async x => x', ['x']],
    ['() => {}', []],
    ['(a, b,) => {}', ['a', 'b']],
    ['function* (a = (x) => x) {}', ['a']],
  ] as const;
  for (const [text, names] of source) {
    const fn = new Function(`return (${text})`)() as Fn;
    const found = parametersOf(fn)?.map(({ text, isObject }) => (isObject ? undefined : text));
    expect([text, found]).toEqual([text, names]);
  }
  expect(parametersOf(Math.max)).toBeUndefined();
  expect(parametersOf(one.bind(undefined))).toBeUndefined();
});

test('a call with as many arguments as there are parameters is taken, any other count is not', () => {
  fc.assert(
    fc.property(fc.nat(5), fc.nat(5), fc.nat(7), (required, optional, given) => {
      const names = Array.from(
        { length: required + optional },
        (_, i) => `p${i}${i < required ? '' : ' = 0'}`,
      );
      const fn = new Function(`return (configs, ${names.join(', ')}) => {}`)() as Fn;
      const call = `f(${Array.from({ length: given }, (_, i) => i).join(', ')})`;
      const fits = given >= required && given <= required + optional;
      expect(problem(fn, call) === 'no error').toBe(fits);
    }),
    { numRuns: 100 },
  );
});
