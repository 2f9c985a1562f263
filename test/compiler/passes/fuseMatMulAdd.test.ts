/** @file Products fused into the sums that read them, on hand-made graphs. */
import { expect, test } from 'vitest';
import { eliminateDeadCode, fuseMatMulAdd } from '../../../src/compiler/passes/index.js';
import { describeGraph, GraphBuilder } from './support.js';

const plain = { transposeA: false, transposeB: false, alpha: 1 };
const fused = (g: GraphBuilder, ...outputs: any[]) =>
  describeGraph(eliminateDeadCode(fuseMatMulAdd(g.graph(...outputs))));

test('of a sum of three products, the later ones start from the earlier ones', () => {
  const g = new GraphBuilder();
  const [a, b] = [g.input([2, 3]), g.input([3, 2])];
  const product = (alpha: number) => g.node('BatchMatMul', [a, b], { ...plain, alpha });
  const sum = g.node('Add', [g.node('Add', [product(1), product(2)]), product(3)]);
  expect(fused(g, sum)).toEqual([
    'BatchMatMul in0 in1 transposeA=false transposeB=false alpha=1 -> #0',
    'MatMulAdd in0 in1 #0 transposeA=false transposeB=false alpha=2 -> #1',
    'MatMulAdd in0 in1 #1 transposeA=false transposeB=false alpha=3 -> #2',
    'return #2',
  ]);
});

test('a reshape between product and sum moves behind the sum', () => {
  const g = new GraphBuilder();
  const [a, b, x] = [g.input([4, 3]), g.input([3, 2]), g.input([2, 2, 2])];
  const product = g.node('Reshape', [g.node('BatchMatMul', [a, b], plain)], { shape: [2, 2, 2] });
  expect(fused(g, g.node('Add', [x, product]))).toEqual([
    'Reshape in2 shape=4,2 -> #0',
    'MatMulAdd in0 in1 #0 transposeA=false transposeB=false alpha=1 -> #1',
    'Reshape #1 shape=2,2,2 -> #2',
    'return #2',
  ]);
});

test('a product that others read, a batch of products and a sum that broadcasts stay as they are', () => {
  const g = new GraphBuilder();
  const [a, b, row] = [g.input([2, 3]), g.input([3, 2]), g.input([1, 2])];
  const shared = g.node('BatchMatMul', [a, b], plain);
  const batch = g.node('BatchMatMul', [g.input([2, 2, 2]), g.input([2, 2, 2])], plain);
  const outputs = [
    g.node('Add', [shared, g.input([2, 2])]),
    g.node('Add', [g.node('BatchMatMul', [a, b], { ...plain, alpha: 2 }), row]),
    g.node('Add', [batch, g.input([2, 2, 2])]),
    g.node('Add', [g.node('BatchMatMul', [g.input([1, 3]), b], plain), g.input([2, 2])]),
    shared,
  ];
  const before = describeGraph(g.graph(...outputs));
  expect(fused(g, ...outputs)).toEqual(before);
});
