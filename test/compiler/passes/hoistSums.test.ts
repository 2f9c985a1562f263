/** @file Sums over the turns of a loop that are taken behind it, on traced gradients of loops. */
import { expect, test } from 'vitest';
import { ops, type Tensor, tf, valueAndGrad } from '../../../src/compiler/index.js';
import { eliminateDeadCode, hoistSums, optimize } from '../../../src/compiler/passes/index.js';
import type { Graph } from '../../../src/compiler/program/ir.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { numbers } from '../../layers/helpers.js';
import { runGraph } from './support.js';

const [TURNS, DEPTH] = [5, 6];

type Step = (h: Tensor, x: Tensor, w: Tensor) => Tensor;

/** The gradients of a recurrence by its weights and its inputs [TURNS, rows, DEPTH]. */
function gradientsOf(step: Step, rows: number, weights: number[]): Graph {
  const loss = ({ w, xs }: any) => {
    const turn = (h: Tensor, x: Tensor) => [step(h, x, w), h];
    const [last] = ops.scan(turn as never, tf.zeros([rows, DEPTH]), xs) as unknown as [Tensor];
    return { value: tf.sum(tf.sin(last)), aux: {} };
  };
  const specs = {
    w: { shape: weights, dtype: 'float32' },
    xs: { shape: [TURNS, rows, DEPTH], dtype: 'float32' },
  } as const;
  return traceProgram((params: any) => valueAndGrad(loss as any, params).grads as any, specs as any).graph;
}

/** Shapes of the carries of the last loop, which goes backwards. */
function carriesOf({ nodes }: Graph): readonly (readonly number[])[] {
  const loop = nodes.findLast(({ op }) => op === 'Scan')!;
  return loop.inputs.slice(0, loop.attrs.carries as number).map(({ shape }) => shape);
}

/** Operations behind the last loop, with the shapes of what they make. */
function behind({ nodes }: Graph): string[] {
  const last = nodes.findLastIndex(({ op }) => op === 'Scan');
  return nodes.slice(last + 1).map(({ op, outputs }) => `${op} ${outputs[0]!.shape.join('x')}`);
}

/** Expects that sums behind the loop have the values of those in it. */
async function expectSame(graph: Graph): Promise<void> {
  const inputs = graph.inputs.map(({ shape, dtype }, i) => {
    const size = shape.reduce((a, b) => a * b, 1);
    return { shape, dtype, data: numbers(size, 3 + i) };
  });
  const hoisted = hoistSums(graph);
  expect(hoisted).not.toBe(graph);
  const [plain, sums] = await Promise.all(
    [graph, hoisted].map((each) => runGraph(eliminateDeadCode(each), inputs)),
  );
  plain!.forEach(({ data }, k) => {
    expect(Math.max(...(data as Float32Array).map(Math.abs))).toBeGreaterThan(0.1);
    data.forEach((x, i) => {
      expect(sums![k]!.data[i]).toBeCloseTo(x, 5);
    });
  });
}

const recurrent: Step = (h, x, w) => tf.tanh(tf.add(x, tf.matMul(h, w)));

test("a recurrent weight's gradient is one product of all turns' rows", async () => {
  const graph = gradientsOf(recurrent, 2, [DEPTH, DEPTH]);
  const optimized = optimize(graph);
  expect(carriesOf(optimized)).toEqual([[2, DEPTH]]);
  expect(behind(optimized)).toEqual([
    `Reshape ${TURNS * 2}x${DEPTH}`,
    `Reshape ${TURNS * 2}x${DEPTH}`,
    `BatchMatMul ${DEPTH}x${DEPTH}`,
  ]);
  await expectSame(graph);
});

test('parts of a weight are padded once, behind the loop', async () => {
  const step: Step = (h, x, w) => recurrent(h, x, tf.slice(w, [DEPTH, 0], [DEPTH, DEPTH]));
  const graph = gradientsOf(step, 2, [2 * DEPTH, DEPTH]);
  expect(carriesOf(optimize(graph))).toEqual([[2, DEPTH]]);
  expect(behind(optimize(graph)).at(-1)).toBe(`PadV2 ${2 * DEPTH}x${DEPTH}`);
  await expectSame(graph);
});

test('a product of more rows than it has sums stays in the loop', () => {
  const graph = gradientsOf(recurrent, 2 * DEPTH, [DEPTH, DEPTH]);
  expect(carriesOf(optimize(graph))).toEqual([
    [2 * DEPTH, DEPTH],
    [DEPTH, DEPTH],
  ]);
});

test('rows are summed behind the loop, from what is stacked or from a carry that holds all rows', async () => {
  // The bias's gradient sums what the gradient by the inputs stacks, and the factor's what nothing else reads.
  const biased: Step = (h, x, w) => tf.tanh(tf.add(tf.add(x, h), w));
  expect(carriesOf(optimize(gradientsOf(biased, 3, [DEPTH])))).toEqual([[3, DEPTH]]);
  await expectSame(gradientsOf(biased, 3, [DEPTH]));
  const scaled: Step = (h, x, w) => tf.tanh(tf.add(x, tf.mul(h, w)));
  const graph = gradientsOf(scaled, 3, [DEPTH]);
  expect(carriesOf(optimize(graph))).toEqual([
    [3, DEPTH],
    [3, DEPTH],
  ]);
  expect(behind(optimize(graph)).at(-1)).toBe(`Sum ${DEPTH}`);
  await expectSame(graph);
});

test('sums of rows keep an axis of them', () => {
  const turn = (h: Tensor, x: Tensor) => [tf.add(h, tf.sum(x, 0, true)), []];
  const sumOf = ({ xs }: any) => (ops.scan(turn as never, tf.ones([1, DEPTH]), xs) as any)[0];
  const { graph } = traceProgram(sumOf, { xs: { shape: [TURNS, 3, DEPTH], dtype: 'float32' } } as any);
  const last = behind(eliminateDeadCode(hoistSums(graph)));
  expect(last).toEqual([`Sum ${DEPTH}`, `Reshape 1x${DEPTH}`, `Add 1x${DEPTH}`]);
});

test('a carry that turns read is no sum', () => {
  const turn = (h: Tensor, x: Tensor) => [tf.add(h, tf.sum(tf.mul(x, tf.sin(h)), 0)), []];
  const sumOf = ({ xs }: any) => (ops.scan(turn as never, tf.zeros([DEPTH]), xs) as any)[0];
  const { graph } = traceProgram(sumOf, { xs: { shape: [TURNS, 1, DEPTH], dtype: 'float32' } } as any);
  const opsOf = ({ nodes }: Graph): string[] => nodes.map(({ op }) => op);
  expect(opsOf(hoistSums(graph))).toEqual(opsOf(graph));
});
