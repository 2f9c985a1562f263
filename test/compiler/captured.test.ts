/** @file Tensors and variables that a compiled function captures are its caller's: they outlive traces, gradients and failures. */
import { beforeAll, describe, expect, test } from 'vitest';
import {
  compile,
  evalShape,
  loadBackend,
  tf,
  valueAndGrad,
  withBackend,
  withScope,
} from '../../src/compiler/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { engines } from './engines.js';
import { compiledResults, floats } from './support.js';

const x = floats([3]);
let captured: tf.Tensor;
let variable: tf.Variable;

beforeAll(async () => {
  await loadBackend('cpu');
  withBackend('cpu', () => {
    captured = tf.tensor1d([1, 2, 3]);
    variable = tf.variable(tf.tensor1d([4, 5, 6]));
  });
});

/** Functions that need what they capture for their gradient, or hand it on. */
const functions: Record<string, (x: tf.Tensor) => any> = {
  'a product': (x) => tf.mul(tf.mul(x, captured), variable),
  'what is saved': (x) => tf.pow(tf.square(captured), tf.exp(tf.mul(x, variable))),
  'a gradient by what is captured': () => tf.grad((c) => tf.sum(tf.mul(tf.exp(c), variable)))(captured),
  'a gradient of a gradient': (x) =>
    tf.grad((y) => tf.sum(tf.grad((z: tf.Tensor) => tf.sum(tf.mul(tf.exp(z), captured)))(y as any)) as any)(
      x,
    ),
  'what is handed on': () => captured,
  'auxiliary results': (x) =>
    valueAndGrad(
      (p: { x: tf.Tensor }) => ({ value: tf.sum(tf.mul(p.x, captured)), aux: { captured, variable } }),
      { x },
    ),
  'what tidy drops': (x) =>
    tf.tidy(() =>
      tf.mul(
        tf.tidy(() => tf.square(captured)),
        x,
      ),
    ),
};

/** All of tfjs's engine that gradients and traces change. */
function engineState() {
  const { state, backendName } = tf.engine() as any;
  const { gradientDepth, kernelDepth, activeTape, scopeStack, numTensors } = state;
  return { backendName, gradientDepth, kernelDepth, activeTape, scopes: scopeStack.length, numTensors };
}

const expectWhole = () =>
  withBackend('cpu', () => {
    expect([captured.isDisposed, variable.isDisposed]).toEqual([false, false]);
    expect([...captured.dataSync()]).toEqual([1, 2, 3]);
    expect([...variable.dataSync()]).toEqual([4, 5, 6]);
    expect([...tf.tidy(() => tf.add(captured, variable).dataSync())]).toEqual([5, 7, 9]);
  });

describe.each([...engines, ['eager', { engine: 'eager', available: true }] as const])(
  '%s',
  (_, { engine, available }) => {
    test.skipIf(!available).each(Object.entries(functions))('%s', async (_, f) => {
      const before = engineState();
      const [first] = await compiledResults(([x]) => f(x), [x], { engine });
      expectWhole();
      evalShape((x) => f(x), x);
      const [second] = await compiledResults(([x]) => f(x), [x], { engine });
      expect(second).toEqual(first);
      expectWhole();
      expect(engineState()).toEqual(before);
    });
  },
);

test('a function that fails, in a gradient or before one, leaves the engine intact', async () => {
  const before = engineState();
  const fail = (_: unknown): never => {
    throw new Error('own mistake');
  };
  const failing: ((x: tf.Tensor) => tf.Tensor)[] = [
    (x) => tf.grad((y) => fail(tf.square(y)))(x),
    (x) => tf.grad((y) => tf.sum(tf.grad((z: tf.Tensor) => fail(tf.mul(z, captured)))(y as any)) as any)(x),
    (x) => tf.grad(tf.customGrad((y: any) => ({ value: tf.sum(y), gradFunc: fail })) as any)(x),
    (x) => tf.tidy(() => fail(tf.square(x))),
  ];
  for (const f of failing) {
    await expect(compile(([x]: any) => f(x), [x])).rejects.toThrow('own mistake');
    expect(engineState()).toEqual(before);
    expectWhole();
  }
});

test('operations after a gradient by tf.grad belong to no layer, nor do those of the next program', () => {
  const f = ([x]: any) => {
    const gradient = tf.grad((y) => withScope('net/a', () => tf.sum(tf.exp(y))) as any)(x);
    return tf.tanh(gradient);
  };
  const scopes = (f: any) => traceProgram(f, [x]).graph.nodes.map(({ op, scope }) => `${op} ${scope}`.trim());
  expect(scopes(f)).toContain('Multiply grad net/a');
  expect(scopes(f).at(-1)).toBe('Tanh');
  expect(() =>
    traceProgram(
      ([x]: any) =>
        tf.grad((y) => withScope('net/a', () => tf.sparse.sparseSegmentSum(y as any, [0], [0])))(x),
      [x],
    ),
  ).toThrow("The operation 'SparseSegmentSum' has no gradient");
  expect(scopes(([x]: any) => tf.exp(x))).toEqual(['Exp']);
});
