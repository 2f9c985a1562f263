/** @file Signatures of calls: calls that may not share a program have other ones. */
import { expect, it } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { readArguments } from '../../src/jit/callStructure.js';
import { expectKey } from '../keys.js';

it('a signature tells dtypes, shapes, names, nesting and plain values apart', () => {
  const base = {
    dtype: 'float32',
    shape: [2, 3],
    name: 'x',
    nesting: (leaf: unknown) => leaf,
    text: 'a',
    nothing: null,
  };
  const others = {
    ...{ dtype: 'int32', shape: [3, 2], name: 'y', nesting: (leaf: unknown) => [leaf] },
    ...{ text: 'b', nothing: undefined },
  };
  expectKey('signatures', base, others, ({ dtype, shape, name, nesting, text, nothing }) => {
    const data = dtype === 'int32' ? new Int32Array(6) : new Float32Array(6);
    return readArguments([{ [name]: nesting({ dtype, shape, data }) }, text, nothing]).signature;
  });
});

it('values of arrays make no difference, nor does who holds them', () => {
  const signatures = [[1, 2], [3, 4], Float32Array.of(1, 2), tf.tensor1d([5, 6])].map(
    (x) => readArguments([x]).signature,
  );
  expect(new Set(signatures)).toEqual(new Set(['[float32(2)]']));
  // The same leaves in other places.
  const places = [
    { a: 1, b: [2] },
    { a: [1], b: 2 },
    { b: 1, a: [2] },
    { c: [1, 'a'] },
    { c: ['a', 1] },
    [1, 2],
    ['null'],
    [null],
    [undefined],
    ['undefined'],
  ];
  expect(new Set(places.map((each) => readArguments([each]).signature)).size).toBe(places.length);
});
