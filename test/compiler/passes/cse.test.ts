/** @file Elimination of common subexpressions and of dead code, folding and expansion on hand-made graphs. */
import { expect, test } from 'vitest';
import { isTracing, withScope } from '../../../src/compiler/index.js';
import {
  eliminateCommonSubexpressions,
  eliminateDeadCode,
  expandComposites,
  foldConstants,
} from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { ops } from '../support.js';
import { describeGraph, GraphBuilder } from './support.js';

test('equal nodes are merged, also with swapped operands of a sum', () => {
  const g = new GraphBuilder();
  const [x, y] = [g.input([2]), g.input([2])];
  const sums = [g.node('Add', [x, y]), g.node('Add', [y, x]), g.node('Add', [x, y])];
  const differences = [g.node('Sub', [x, y]), g.node('Sub', [y, x])];
  const top = g.node('Multiply', [sums[0]!, sums[1]!]);
  expect(describeGraph(eliminateCommonSubexpressions(g.graph(top, sums[2]!, ...differences)))).toEqual([
    'Add in0 in1 -> #0',
    'Sub in0 in1 -> #1',
    'Sub in1 in0 -> #2',
    'Multiply #0 #0 -> #3',
    'return #3 #0 #1 #2',
  ]);
});

test('equal constants are merged; dtype, shape and the last bit distinguish them', () => {
  const g = new GraphBuilder();
  const x = g.input([2]);
  const exps = [
    g.constant([2], [1, 2]),
    g.constant([2], [1, 2]),
    g.constant([1, 2], [1, 2]),
    g.constant([2], [1, 2 + 2 ** -22]),
    g.constant([2], [0, -0]),
    g.constant([2], [0, 0]),
  ].map((c) => g.node('Add', [x, c]));
  expect(eliminateCommonSubexpressions(g.graph(...exps)).nodes.length).toBe(5);
});

test('attributes tell nodes apart, NaN and infinities too', () => {
  const g = new GraphBuilder();
  const fills = [Number.NaN, Number.POSITIVE_INFINITY, -Infinity, 0, -0, Number.NaN].map((value) =>
    g.node('Fill', [], { shape: [2], value, dtype: 'float32' }),
  );
  const merged = eliminateCommonSubexpressions(g.graph(...fills));
  expect(merged.nodes.map((node) => node.attrs.value)).toEqual([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -Infinity,
    0,
    -0,
  ]);
  expect(merged.outputs[5]).toBe(merged.outputs[0]);
});

test('all outputs of equal nodes are merged', () => {
  const g = new GraphBuilder();
  const x = g.input([4]);
  const [a, b] = [0, 1].map(() => g.all('SplitV', [x], { axis: 0, sizes: [1, 3] }));
  expect(describeGraph(eliminateCommonSubexpressions(g.graph(a![0]!, b![1]!)))).toEqual([
    'SplitV in0 axis=0 sizes=1,3 -> #0 #1',
    'return #0 #1',
  ]);
});

test('unused nodes are dropped, but not a node with one used output', () => {
  const g = new GraphBuilder();
  const x = g.input([4]);
  const [first] = g.all('SplitV', [x], { axis: 0, sizes: [1, 3] });
  g.node('Exp', [g.node('Neg', [x])]);
  const graph = eliminateDeadCode(g.graph(g.node('Neg', [first!])));
  expect(describeGraph(graph)).toEqual(['SplitV in0 axis=0 sizes=1,3 -> #0 #1', 'Neg #0 -> #2', 'return #2']);
  expect(describeGraph(eliminateDeadCode(graph))).toEqual(describeGraph(graph));
});

test('nodes over constants become constants, through a chain, and leave the rest', () => {
  const g = new GraphBuilder();
  const x = g.input([2]);
  const sum = g.node('Add', [g.constant([2], [1, 2]), g.constant([], [10])]);
  const turned = g.node('Transpose', [g.node('Reshape', [sum], { shape: [1, 2] })], { perm: [1, 0] });
  const graph = foldConstants(g.graph(g.node('Multiply', [x, sum]), turned, g.node('Exp', [x])));
  expect(describeGraph(graph)).toEqual([
    'Multiply in0 [11,12] -> #0',
    'Exp in0 -> #1',
    'return #0 [11,12] #1',
  ]);
});

test('a constant of more than a million elements stays computed', () => {
  const g = new GraphBuilder();
  const big = g.constant([1 << 20], new Array(1 << 20).fill(1));
  const wide = g.node('Add', [big, g.constant([2, 1], [0, 1])]);
  expect(foldConstants(g.graph(wide)).nodes.length).toBe(1);
});

test('composites are expanded where asked, keep their layer, and share their inputs', () => {
  const x = { shape: [2, 3], dtype: 'float32' } as const;
  const { graph } = traceProgram(
    (t: any) => {
      expect(isTracing()).toBe(true);
      return withScope('lm/norm', () => ops.rmsNorm(t.x, null, { epsilon: 0 }));
    },
    { x },
  );
  expect(describeGraph(graph)).toEqual([
    'RmsNorm in0 epsilon=0 hasScale=false hasBias=false -> #0 #1',
    'return #0',
  ]);
  expect(expandComposites(graph, () => true)).toEqual(graph);
  const expanded = expandComposites(graph, () => false);
  expect(expanded.nodes.map((node) => node.op)).toEqual(['Square', 'Mean', 'Add', 'Rsqrt', 'Multiply']);
  expect(new Set(expanded.nodes.map((node) => node.scope))).toEqual(new Set(['lm/norm']));
  expect(expanded.inputs).toEqual(graph.inputs);
});
