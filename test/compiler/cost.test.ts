/** @file Costs equal to those counted by hand. */
import { expect, test } from 'vitest';
import { graphCost } from '../../src/compiler/cost.js';
import { costAnalysis, type Tensor, type TensorSpec } from '../../src/compiler/index.js';
import { GraphBuilder } from './passes/support.js';
import { ops, tf } from './support.js';

const spec = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });

test('a product', () => {
  expect(costAnalysis((a: Tensor, b: Tensor) => tf.matMul(a, b), spec(5, 2, 3), spec(5, 3, 4))).toEqual({
    flops: 5 * 2 * 4 * (3 + 3),
    bytes: 4 * (30 + 60 + 40),
    peakMemory: 4 * (30 + 60 + 40),
    byOp: { BatchMatMul: { count: 1, flops: 240, bytes: 520 } },
  });
});

test('attention is its two products', () => {
  const [B, T, S, N, H] = [2, 3, 5, 4, 8];
  const cost = costAnalysis(
    (q: Tensor, k: Tensor, v: Tensor) => ops.attention(q, k, v),
    spec(B, T, N, H),
    spec(B, S, N, H),
    spec(B, S, N, H),
  );
  expect(cost.flops).toBe(2 * (2 * B * N * T * S * H));
});

test('a GPT block: 24 B T D^2 in projections, 4 B T^2 D in attention', () => {
  const [B, T, D, N] = [2, 16, 32, 4];
  const block = (x: Tensor, w: Record<string, Tensor>) => {
    const heads = (y: Tensor) => tf.reshape(y, [B, T, N, D / N]);
    const linear = (y: Tensor, name: string) => tf.matMul(tf.reshape(y, [B * T, -1]), w[name]!);
    const y = ops.layerNorm(x, w.scale!, null, { epsilon: 1e-6 });
    const [q, k, v] = ['q', 'k', 'v'].map((name) => heads(linear(y, name)));
    const mixed = ops.attention(q!, k!, v!, { causal: true });
    const middle = tf.add(x, tf.reshape(linear(mixed, 'o'), [B, T, D]));
    const z = ops.layerNorm(middle, w.scale!, null, { epsilon: 1e-6 });
    return tf.add(middle, tf.reshape(linear(ops.gelu(linear(z, 'up')), 'down'), [B, T, D]));
  };
  const square = spec(D, D);
  const cost = costAnalysis(block, spec(B, T, D), {
    q: square,
    k: square,
    v: square,
    o: square,
    up: spec(D, 4 * D),
    down: spec(4 * D, D),
    scale: spec(D),
  });
  expect(cost.byOp.BatchMatMul!.flops).toBe(24 * B * T * D * D);
  expect(cost.byOp.Attention!.flops).toBe(4 * B * T * T * D);
  const size = B * T * D;
  const rest = { LayerNorm: 2 * 8 * size, Gelu: 8 * 4 * size, Add: 2 * size };
  for (const [op, flops] of Object.entries(rest)) expect(cost.byOp[op]!.flops, op).toBe(flops);
  const total = 24 * size * D + 4 * size * T + (16 + 32 + 2) * size;
  expect(cost.flops).toBe(total);
});

test('costs count what is left after optimization', () => {
  const cost = costAnalysis((x: Tensor) => {
    tf.exp(x);
    return tf.add(tf.square(x), tf.square(x));
  }, spec(10));
  expect(cost.byOp).toEqual({
    Square: { count: 1, flops: 10, bytes: 80 },
    Add: { count: 1, flops: 10, bytes: 120 },
  });
});

test('memory at its peak: inputs, constants and outputs throughout, the rest from first to last use', () => {
  const g = new GraphBuilder();
  const x = g.input([10]);
  const a = g.node('Neg', [x]);
  const b = g.node('Exp', [a]);
  const c = g.node('Add', [b, g.constant([10], new Array(10).fill(2))]);
  const mask = g.node('Greater', [c, x]);
  const out = g.node('Select', [mask, c, x]);
  // Always: x 40, the constant 40, out 40. With a and b, or b and c: 200; c and its mask of bytes: 170.
  expect(graphCost(g.graph(out)).peakMemory).toBe(200);
  // A result that nobody reads lives while it is made.
  g.node('Concat', [x, x, x, x], { axis: 0 });
  expect(graphCost(g.graph(out)).peakMemory).toBe(120 + 160);
});
