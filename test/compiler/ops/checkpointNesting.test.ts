/** @file Checkpoints among everything else: closures, indices, random numbers, nesting, gradients of gradients. */
import { describe, expect, test } from 'vitest';
import { type Tensor, valueAndGrad } from '../../../src/compiler/index.js';
import { engines } from '../engines.js';
import { compiledResults, expectClose, floats, host, ops, tf } from '../support.js';

type Layer = (x: Tensor, w: Tensor, v: Tensor) => Tensor;

const layer: Layer = (x, w, v) =>
  tf.add(x, tf.matMul(tf.tanh(tf.matMul(ops.rmsNorm(x, null, { epsilon: 1e-6 }), w)), v));

/** Gradients of a chain of layers by their weights. */
const gradientsOf = (f: Layer, x: Tensor, weights: readonly [Tensor, Tensor][]) =>
  valueAndGrad(
    (params: any) => ({
      value: tf.mean(tf.square(params.reduce((h: Tensor, [w, v]: Tensor[]) => f(h, w!, v!), x))),
      aux: {},
    }),
    weights as any,
  );

const inputs = {
  x: floats([6, 4], -1, 1, 1),
  weights: [2, 3, 4].map((seed) => [floats([4, 8], -1, 1, seed), floats([8, 4], -1, 1, seed + 9)]),
  table: floats([5, 4], -1, 1, 20),
  ids: host([6], [4, 0, 1, 1, 3, 2], 'int32'),
  key: host([2], [3, 4], 'int32'),
};

const all =
  (wrap: typeof ops.checkpoint) =>
  ({ x, weights, table, ids, key }: any) => {
    const inner = wrap(layer, 'dots');
    const loss = (params: any) => {
      const block = wrap((h: Tensor, i: number) => {
        const [w, v] = params.weights[i];
        const drawn = ops.dropout(h, ops.foldIn(key, i), 0.8);
        return wrap(() => tf.mul(inner(drawn, w, v), params.scale))();
      });
      const start = wrap(() => tf.add(x, ops.embeddingLookup(params.table, ids)))();
      const end = [0, 1, 2].reduce((h, i) => block(h, i), start);
      return { value: tf.sum(tf.mul(tf.softmax(end), tf.range(0, 4))) as Tensor, aux: {} };
    };
    const params = { weights, table, scale: tf.onesLike(x) };
    const { value, grads } = valueAndGrad(loss, params) as any;
    // Gradients of a gradient.
    const again = valueAndGrad(
      (p: any) => ({
        value: tf.sum(tf.square((gradientsOf(wrap(layer), x, [p]).grads as any)[0][0])) as Tensor,
        aux: {},
      }),
      weights[0],
    ) as any;
    return [value, grads, again.grads];
  };

/** What tfjs's own backend computes, once for all engines. */
let eagerly: ReturnType<typeof compiledResults> | undefined;

describe.each(engines)('%s', (_, { engine, available }) => {
  test.runIf(available)(
    'values and gradients of every order are those of what is not checkpointed',
    async () => {
      const none = ((f: Layer) => f) as unknown as typeof ops.checkpoint;
      const both = (given: any) => [all(none)(given), all(ops.checkpoint)(given)];
      const results = await compiledResults(both as any, inputs as any, { engine });
      const half = results.length / 2;
      expect(half).toBe(1 + 8 + 2);
      for (let i = 0; i < half; i++) {
        const [plain, checked] = [results[i]!, results[half + i]!];
        // Machine code may fuse a multiplication and an addition in the one loop and not in the other.
        if (engine === 'native')
          expectClose(checked, plain, { relative: 1e-6, absolute: 1e-7 }, `result ${i}`);
        else expect(checked.data, `result ${i}`).toEqual(plain.data);
      }
      eagerly ??= compiledResults(all(ops.checkpoint) as any, inputs as any, { engine: 'eager' });
      (await eagerly).forEach((result, i) => {
        expectClose(results[i]!, result, { relative: 1e-4, absolute: 1e-5 }, `result ${i}`);
      });
    },
  );
});
