/** @file Gradients of gradients of composites and decomposed kernels whose operands, or cotangents, depend on one another. */
import { expect, test } from 'vitest';
import { compile, type Engine, type HostTensor, ops, type Tensor, tf } from '../../../src/compiler/index.js';
import { expectClose, repeatedly } from '../support.js';
import { floats } from '../values.js';

const normed = (x: Tensor): Tensor => tf.tanh(ops.rmsNorm(x, null, { epsilon: 0.1 }));
const joined = (x: Tensor): Tensor => tf.tanh(tf.einsum('ij,kj->ik', x, tf.sin(x)));

/** The gradient of the sum of squares of what `f` gives. */
const slope =
  (f: (x: Tensor) => Tensor) =>
  (x: Tensor): Tensor =>
    tf.grad((y: Tensor) => tf.sum(tf.square(f(y))))(x);

const inBranch =
  (f: (x: Tensor) => Tensor) =>
  (x: Tensor): Tensor =>
    ops.cond(tf.less(tf.sum(x), 100), f, (y: Tensor) => tf.mul(y, 2), x);

const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'the third derivative of a norm': slope(slope(slope(normed))),
  'the second derivative of a norm in a branch': slope(slope(inBranch(normed))),
  'the third derivative of a kernel whose operands depend on one another': slope(slope(slope(joined))),
  'the second derivative of such a kernel in a branch': slope(slope(inBranch(joined))),
};

const x = floats([3, 3], -1, 1, 5);
/** The same, of elementary operations that tfjs itself differentiates. */
const elementary: typeof functions = {
  'the third derivative of a norm': slope(slope(slope(plainNorm))),
  'the second derivative of a norm in a branch': slope(slope(plainNorm)),
  'the third derivative of a kernel whose operands depend on one another': slope(slope(slope(plainJoin))),
  'the second derivative of such a kernel in a branch': slope(slope(plainJoin)),
};

function plainNorm(y: Tensor): Tensor {
  return tf.tanh(tf.div(y, tf.sqrt(tf.add(tf.mean(tf.square(y), -1, true), 0.1))));
}

function plainJoin(y: Tensor): Tensor {
  return tf.tanh(tf.matMul(y, tf.sin(y), false, true));
}

async function resultsOf(all: typeof functions, engine: Engine): Promise<Record<string, HostTensor>> {
  const f = (given: Tensor) =>
    Object.fromEntries(Object.entries(all).map(([name, each]) => [name, each(given)]));
  const executable = await compile(f as any, x, { engine });
  const results = (await repeatedly(executable, x)) as unknown as Record<string, HostTensor>;
  await executable.dispose();
  return results;
}
let known: ReturnType<typeof resultsOf> | undefined;

test.each(['eager', 'onnx'] as const)('%s: derivatives are partial', async (engine) => {
  known ??= resultsOf(elementary, 'eager');
  const [actual, expected] = [await resultsOf(functions, engine), await known];
  for (const name of Object.keys(functions)) {
    expectClose(actual[name]!, expected[name]!, { relative: 1e-4, absolute: 1e-4 }, name);
    expect(
      expected[name]!.data.some((value) => Math.abs(value) > 0.1),
      name,
    ).toBe(true);
  }
});
