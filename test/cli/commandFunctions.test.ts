/** @file How plain functions of an experiment's file are called: literals by position, those with names as one object. */
import { expect, test } from 'vitest';
import { argumentsFor } from '../../src/cli/commandFunctions.js';
import { ConfigError, parseCall } from '../../src/hparams/index.js';

type Fn = (...values: any[]) => unknown;

const called = (fn: Fn, call: string): unknown[] =>
  argumentsFor({ name: 'f', kind: undefined, fields: undefined, fn }, parseCall(call), 1);

const one = (_configs: unknown, times: number) => times;
const two = (_configs: unknown, times: number, by = 2) => times * by;
const options = (_configs: unknown, { size = 1, what = 'all' } = {}) => [size, what];
const many = (_configs: unknown, ...sizes: number[]) => sizes;
const none = (_configs: unknown) => {};

test('positional literals become parameters, named ones a final object', () => {
  expect(called(one, 'f(3)')).toEqual([3]);
  expect(called(two, 'f(3)')).toEqual([3]);
  expect(called(two, 'f(3, 4)')).toEqual([3, 4]);
  expect(called(options, 'f(size=3, what=some)')).toEqual([{ size: 3, what: 'some' }]);
  expect(called(options, 'f({size: 3})')).toEqual([{ size: 3 }]);
  expect(called(options, 'f')).toEqual([]);
  expect(called(two, 'f(3, size=4, other=5)')).toEqual([3, { size: 4, other: 5 }]);
  expect(called(many, 'f(1, 2, 3, 4)')).toEqual([1, 2, 3, 4]);
  expect(called(none, 'f')).toEqual([]);
});

test('too few are an error', () => {
  const call = () => called((_configs, _a, _b) => {}, 'f(1)');
  expect(call).toThrow(new ConfigError('f needs 2 arguments, got 1.\n  f(1)\n      ^'));
});

test('too many are an error, which points at the first of them', () => {
  const message = (fn: Fn, call: string): string => {
    try {
      called(fn, call);
    } catch (error) {
      return (error as ConfigError).message;
    }
    return expect.unreachable();
  };
  expect(message(one, 'f(1, 2, 3)')).toBe('f takes at most 1 argument, got 3.\n  f(1, 2, 3)\n       ^');
  expect(message(two, 'f(1, 2, size=3)')).toBe(
    'f takes at most 2 arguments, got 3.\n  f(1, 2, size=3)\n          ^',
  );
  expect(message(options, 'f(2, size=3)')).toBe(
    'f takes at most 1 argument, got 2.\n  f(2, size=3)\n       ^',
  );
  expect(message(none, 'f(1)')).toBe('f takes no arguments.\n  f(1)\n    ^');
  expect(message(() => {}, 'f(size=1)')).toBe('f takes no arguments.\n  f(size=1)\n    ^');
});

test('functions that take any number are given all', () => {
  function reads(_configs: unknown) {
    // biome-ignore lint/complexity/noArguments: it is what is tested.
    return arguments.length;
  }
  const { method } = { method(_configs: unknown, _n = 1) {} };
  for (const fn of [many, reads, none.bind(null), method]) expect(called(fn, 'f(1, 2)')).toEqual([1, 2]);
  async function later(_configs: unknown, { size } = { size: 1 }, [first] = [1]) {
    return [size, first];
  }
  expect(called(later, 'f({size: 2}, [3])')).toEqual([{ size: 2 }, [3]]);
});
