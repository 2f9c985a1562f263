/** @file Costs equal to those counted by hand. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  byteSize,
  costAnalysis,
  type Tensor,
  type TensorSpec,
  withPrecision,
} from '../../../src/compiler/index.js';
import { graphCost, peakMemory } from '../../../src/compiler/program/cost.js';
import type { Graph, Value } from '../../../src/compiler/program/ir.js';
import { GraphBuilder } from '../passes/support.js';
import { ops, tf } from '../support.js';

const spec = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });

test('a product', () => {
  expect(costAnalysis((a: Tensor, b: Tensor) => tf.matMul(a, b), spec(5, 2, 3), spec(5, 3, 4))).toEqual({
    flops: 5 * 2 * 4 * (3 + 3),
    productFlops: 240,
    visibleFlops: 240,
    bytes: 4 * (30 + 60 + 40),
    peakMemory: 4 * (30 + 60 + 40),
    precision: 'float32',
    byOp: { BatchMatMul: { count: 1, flops: 240, bytes: 520 } },
  });
});

test('the precision is that of most of the FLOPs of products', () => {
  const precisionOf = (width: number) =>
    costAnalysis(
      (a: Tensor, b: Tensor, c: Tensor) => [
        withPrecision('bfloat16', () => tf.matMul(a, b)),
        tf.matMul(a, c),
        tf.exp(c),
      ],
      spec(2, 3),
      spec(3, width),
      spec(3, 10),
    ).precision;
  expect([9, 11].map(precisionOf)).toEqual(['float32', 'bfloat16']);
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

test('costs are those of the optimized program', () => {
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

test('a reshape moves nothing, and its result is its input', () => {
  const g = new GraphBuilder();
  const x = g.input([10]);
  const a = g.node('Exp', [x]);
  const view = g.node('Reshape', [g.node('ExpandDims', [a], { shape: [1, 10] })], { shape: [5, 2] });
  // x, a and b: the view keeps a alive, and takes no room beside it.
  const b = g.node('Neg', [view]);
  const cost = graphCost(g.graph(b));
  expect(cost.peakMemory).toBe(120);
  expect(cost.bytes).toBe(160);
  // A program that returns a view of its input has no memory but the input's.
  expect(graphCost({ ...g.graph(g.node('Reshape', [x], { shape: [2, 5] })), nodes: [] }).peakMemory).toBe(80);
});

test("memory that is the caller's is not counted, nor are views of it", () => {
  const g = new GraphBuilder();
  const [weights, x] = [g.input([10]), g.input([10])];
  const y = g.node('Multiply', [weights, x]);
  const z = g.node('Exp', [y]);
  const grad = g.node('Reshape', [g.node('Neg', [z])], { shape: [2, 5] });
  const graph = g.graph(grad);
  // Beside weights and gradient: x throughout, y and z once.
  expect(peakMemory(graph, [weights, grad])).toBe(120);
  expect(peakMemory(graph)).toBe(200);
});

/** Counts what is alive at each node from the definition, looking through the whole program each time. */
function peakByDefinition({ inputs, outputs, nodes }: Graph): number {
  const memoryOf = (value: Value): Value => {
    const node = nodes.find((made) => made.outputs.includes(value));
    return node !== undefined && ['Reshape', 'Identity'].includes(node.op)
      ? memoryOf(node.inputs[0]!)
      : value;
  };
  const all = new Set(
    [...inputs, ...outputs, ...nodes.flatMap((node) => [...node.inputs, ...node.outputs])].map(memoryOf),
  );
  const ends = new Set([...inputs, ...outputs].map(memoryOf));
  const aliveAt = (value: Value, i: number): boolean => {
    const made = nodes.findIndex((node) => node.outputs.includes(value));
    if (made < 0 || ends.has(value)) return true;
    const reads = nodes.flatMap((node, at) => (node.inputs.some((x) => memoryOf(x) === value) ? [at] : []));
    return i >= made && i <= Math.max(made, ...reads);
  };
  const bytesAt = (i: number): number =>
    [...all].filter((value) => aliveAt(value, i)).reduce((sum, value) => sum + byteSize(value), 0);
  return Math.max(...[-1, ...nodes.keys()].map(bytesAt));
}

test('memory at its peak is that of the definition, for random programs', () => {
  const step = fc.record({
    op: fc.constantFrom('Neg', 'Add', 'Reshape', 'Identity', 'Concat', 'SplitV', 'constant'),
    // Which of the values so far are read.
    a: fc.nat(),
    b: fc.nat(),
  });
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 1, maxLength: 25 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
      (steps, ends) => {
        const g = new GraphBuilder();
        const values = [g.input([4]), g.input([8])];
        for (const { op, a, b } of steps) {
          const [x, y] = [values[a % values.length]!, values[b % values.length]!];
          const size = x.shape[0]!;
          if (op === 'constant') values.push(g.constant([2], [1, 2]));
          else if (op === 'Concat') values.push(g.node(op, [x, y], { axis: 0 }));
          else if (op === 'SplitV' && size > 1)
            values.push(...g.all(op, [x], { axis: 0, sizes: [1, size - 1] }));
          else if (op === 'Add') values.push(g.node(op, [x, x.shape[0] === y.shape[0] ? y : x]));
          else if (op === 'Reshape') values.push(g.node(op, [x], { shape: [size] }));
          else values.push(g.node('Neg', [x]));
        }
        const graph = g.graph(...ends.map((end) => values[end % values.length]!));
        expect(peakMemory(graph)).toBe(peakByDefinition(graph));
      },
    ),
  );
});

test('no memory is taken, however large the constants', () => {
  const before = process.memoryUsage().arrayBuffers;
  const [B, T, N, H] = [1, 2 ** 17, 2, 4];
  const heads = spec(B, T, N, H);
  const cost = costAnalysis(
    (q: Tensor, k: Tensor, v: Tensor) =>
      ops.attention(q, k, v, { causal: true, logits: ops.attentionLogits }),
    heads,
    heads,
    heads,
  );
  // The mask alone is 64 GiB.
  expect(cost.peakMemory).toBeGreaterThan(2 * 4 * T * T);
  expect(cost.byOp.BatchMatMul!.flops).toBe(4 * B * T * T * N * H);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 ** 24);
});
