/** @file Programs of too many operations: an error that names the layer that records them, forward or in the gradient. */
import { afterEach, expect, test, vi } from 'vitest';
import { evalShape, type Tensor, tf } from '../../../src/compiler/index.js';
import { ProgramSizeError } from '../../../src/compiler/trace/programSize.js';
import { withScope } from '../../../src/compiler/trace/scopes.js';

afterEach(() => vi.unstubAllEnvs());

const x = { shape: [2], dtype: 'float32' } as const;
const called = (layers: number) => (input: Tensor) => {
  const layer = (y: Tensor, i: number) => withScope(`lm/stack/layers_${i}`, () => tf.mul(tf.sin(y), 2));
  const all = () =>
    Array.from({ length: layers }, (_, i) => i).reduce(
      layer,
      withScope('lm/softmax', () => tf.neg(input)),
    );
  return withScope('lm', () => tf.sum(all()));
};
const says = (layers: number) =>
  `The program has more than 100 operations (in layer 'lm/stack' most of them, which calls ${layers} layers): a number in its ` +
  'config, such as that of the layers, is taken for a mistake. Repeat has one layer in the program, however often it is ' +
  'called; LUTHIER_MAX_OPERATIONS sets another limit.';

test('a program of many layers', () => {
  vi.stubEnv('LUTHIER_MAX_OPERATIONS', '100');
  expect(() => evalShape(called(1e6), x)).toThrow(new ProgramSizeError(says(50)));
  const gradient = (input: Tensor) => tf.grad(called(30))(input);
  expect(() => evalShape(gradient, x)).toThrow(new ProgramSizeError(says(30)));
  expect(evalShape(called(30), x)).toEqual({ shape: [], dtype: 'float32' });
  vi.stubEnv('LUTHIER_MAX_OPERATIONS', 'none');
  expect(() => evalShape(called(1), x)).toThrow(
    "LUTHIER_MAX_OPERATIONS: expected a positive integer, got 'none'.",
  );
});
