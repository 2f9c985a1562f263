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
