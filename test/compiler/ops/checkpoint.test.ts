/** @file Checkpoints: the same values and gradients, computed again instead of kept. */
import { describe, expect, test } from 'vitest';
import {
  CompilerError,
  costAnalysis,
  type HostTensor,
  ops,
  type Tensor,
  tf,
  valueAndGrad,
} from '../../../src/compiler/index.js';
import { lowerToC } from '../../../src/compiler/native/c/lowerToC.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { compiledResults, expectClose, floats, host } from '../support.js';

const [LAYERS, DEPTH, ROWS] = [4, 16, 64];
type Policy = Parameters<typeof ops.checkpoint>[1] | null;
interface Inputs<T> {
  readonly x: T;
  readonly weights: readonly (readonly [T, T])[];
  readonly key: T;
}

/** A residual layer with noise, whose hidden values are four times as wide as its input. */
function layer(x: Tensor, w: Tensor, v: Tensor, key: Tensor): Tensor {
  const hidden = ops.checkpointName(tf.tanh(tf.matMul(ops.rmsNorm(x, null, { epsilon: 1e-6 }), w)), 'hidden');
  return tf.add(x, tf.matMul(ops.dropout(hidden, key, 0.75), v));
}

const step =
  (policy: Policy) =>
  ({ x, weights, key }: Inputs<Tensor>): any =>
    valueAndGrad((params: Inputs<Tensor>['weights']) => {
      let y = x;
      for (const [i, [w, v]] of params.entries()) {
        const own = ops.foldIn(key, i);
        // The key is a tensor of the outer function.
        const f = (a: Tensor, b: Tensor, c: Tensor) => layer(a, b, c, own);
        y = (policy === null ? f : ops.checkpoint(f, policy))(y, w, v);
      }
      return { value: tf.mean(tf.square(y)), aux: {} };
    }, weights as any);

const inputs: Inputs<HostTensor> = {
  x: floats([ROWS, DEPTH]),
  weights: Array.from({ length: LAYERS }, (_, i) => [
    floats([DEPTH, 4 * DEPTH], -0.1, 0.1, i),
    floats([4 * DEPTH, DEPTH], -0.1, 0.1, i + 50),
  ]),
  key: host([2], [1, 2], 'int32'),
};

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('values and gradients are the same under every policy', async () => {
    const policies: Policy[] = [null, 'everything', 'dots', 'dotsWithNoBatchDims', ['hidden'], 'nothing'];
    const all = (each: any) => policies.map((policy) => step(policy)(each));
    const results = await compiledResults(all, inputs as any, { engine });
    const count = results.length / policies.length;
    expect(count).toBe(1 + 2 * LAYERS);
    for (const [i, result] of results.entries()) {
      const what = `${policies[Math.floor(i / count)]}, result ${i % count}`;
      const expected = results[i % count]!;
      // Machine code may fuse a multiplication and an addition in the one loop and not in the other.
      if (engine === 'native') expectClose(result, expected, { relative: 1e-5, absolute: 1e-8 }, what);
      else expect(result, what).toEqual(expected);
    }
  });
});

test('the less is kept, the less memory is used, and the more is computed', () => {
  const costs = (['everything', 'dots', 'nothing'] as const).map((policy) => {
    const { peakMemory, flops } = costAnalysis(step(policy), inputs as any);
    const lowered = lowerToC(optimize(traceProgram(step(policy), inputs as any).graph));
    if ('missing' in lowered) throw new Error(lowered.missing);
    return [-peakMemory, -lowered.plan.arenaBytes, flops];
  });
  for (const i of [0, 1, 2]) {
    const values = costs.map((cost) => cost[i]!);
    expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(new Set(values).size).toBe(3);
  }
  const kept = costAnalysis(step(null), inputs as any);
  expect(costAnalysis(step('everything'), inputs as any)).toEqual(kept);
  // The hidden values of all layers but one are gone.
  const hidden = 4 * ROWS * 4 * DEPTH;
  expect(kept.peakMemory - costAnalysis(step('nothing'), inputs as any).peakMemory).toBeGreaterThan(
    (LAYERS - 1) * hidden,
  );
});

test('a policy that there is not is refused', () => {
  expect(() => ops.checkpoint((x: Tensor) => x, 'dot' as never)).toThrow(
    new CompilerError(
      "ops.checkpoint: expected 'nothing', 'everything', 'dots', 'dotsWithNoBatchDims' or a list of names as policy, got \"dot\".",
    ),
  );
});

test('checkpoints may be nested', async () => {
  const f = (x: Tensor) => tf.tanh(tf.mul(ops.checkpoint((y: Tensor) => tf.sin(tf.exp(y)))(x), x));
  const gradient = (g: (x: Tensor) => Tensor) => (x: Tensor) =>
    valueAndGrad((v: Tensor) => ({ value: tf.sum(g(v)), aux: {} }), x).grads;
  const both = (x: Tensor) => [gradient(f)(x), gradient(ops.checkpoint(f))(x)];
  const [plain, nested] = await compiledResults(both, floats([5]), { engine: 'onnx' });
  expect(nested).toEqual(plain);
});

test('a checkpointed function may take gradients itself', async () => {
  const f = (x: Tensor): Tensor => {
    const inner = (v: Tensor) => ({ value: tf.sum(tf.exp(tf.sin(v))) as Tensor, aux: {} });
    return tf.tanh(tf.mul(valueAndGrad(inner, tf.mul(x, x)).grads, x));
  };
  const gradient = (g: (x: Tensor) => Tensor) => (x: Tensor) =>
    valueAndGrad((v: Tensor) => ({ value: tf.sum(g(v)), aux: {} }), x).grads;
  const both = (x: Tensor) => [gradient(f)(x), gradient(ops.checkpoint(f))(x)];
  const [plain, checked] = await compiledResults(both, floats([5]), { engine: 'onnx' });
  expect(checked).toEqual(plain);
});
