/** @file Sums of products merged into one product, on hand-made graphs. */
import { expect, test } from 'vitest';
import { eliminateDeadCode, mergeProducts } from '../../../src/compiler/passes/index.js';
import { describeGraph, GraphBuilder } from './support.js';

const plain = { transposeA: false, transposeB: false, alpha: 1 };
const turned = { ...plain, transposeA: true };
const described = (attrs: typeof plain): string =>
  Object.entries(attrs)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
const merged = (g: GraphBuilder, ...outputs: any[]) =>
  describeGraph(eliminateDeadCode(mergeProducts(g.graph(...outputs))));

test('the terms of all products are joined, in the order of their sum', () => {
  const g = new GraphBuilder();
  const rest = g.input([8, 8]);
  const product = (rows: number) => g.node('BatchMatMul', [g.input([rows, 8]), g.input([rows, 8])], turned);
  const first = g.node('Add', [g.node('Add', [product(1), product(2)]), product(3)]);
  expect(merged(g, g.node('Add', [first, rest]))).toEqual([
    'Concat in1 in3 in5 axis=0 -> #0',
    'Concat in2 in4 in6 axis=0 -> #1',
    `BatchMatMul #0 #1 ${described(turned)} -> #2`,
    'Add #2 in0 -> #3',
    'return #3',
  ]);
});

test('products join across another term of the sum, along the axes that they sum over', () => {
  const g = new GraphBuilder();
  const sum = g.input([8, 8]);
  const attrs = { ...plain, transposeB: true };
  const product = () => g.node('BatchMatMul', [g.input([8, 2]), g.input([8, 2])], attrs);
  expect(merged(g, g.node('Add', [g.node('Add', [product(), sum]), product()]))).toEqual([
    'Concat in1 in3 axis=1 -> #0',
    'Concat in2 in4 axis=1 -> #1',
    `BatchMatMul #0 #1 ${described(attrs)} -> #2`,
    'Add in0 #2 -> #3',
    'return #3',
  ]);
});

test('right operands that are stacked anyway are read from there, and left ones take their order', () => {
  const g = new GraphBuilder();
  const [a, b, c, d] = [1, 2, 3, 4].map(() => g.input([2, 8])) as [any, any, any, any];
  const product = (x: any, y: any) => g.node('BatchMatMul', [x, y], turned);
  const sum = g.node('Add', [product(a, c), product(b, d)]);
  const stack = g.node('Pack', [d, c], { axis: 1 });
  expect(merged(g, sum, stack)).toEqual([
    'Pack in3 in2 axis=1 -> #0',
    'Pack in1 in0 axis=1 -> #1',
    'Reshape #1 shape=4,8 -> #2',
    'Reshape #0 shape=4,8 -> #3',
    `BatchMatMul #2 #3 ${described(turned)} -> #4`,
    'return #4 #0',
  ]);
});

test('products that differ, are deep, or are read elsewhere stay as they are', () => {
  const g = new GraphBuilder();
  const product = (rows: number, attrs: any = turned) =>
    g.node('BatchMatMul', [g.input([rows, 8]), g.input([rows, 8])], attrs);
  const shared = product(2);
  const outputs = [
    g.node('Add', [product(2), product(2, { ...turned, alpha: 2 })]),
    g.node('Add', [product(2), product(2, { ...turned, precision: 'bfloat16' })]),
    // Their operands are as large as two results.
    g.node('Add', [product(8), product(8)]),
    g.node('Add', [shared, product(2)]),
    shared,
  ];
  const before = describeGraph(g.graph(...outputs));
  expect(merged(g, ...outputs)).toEqual(before);
});

test('a product has 1024 terms at most', () => {
  const g = new GraphBuilder();
  const product = () => g.node('BatchMatMul', [g.input([400, 1000]), g.input([400, 1000])], turned);
  const sum = [product(), product(), product()].reduce((x, y) => g.node('Add', [x, y]));
  const lines = merged(g, sum);
  expect(lines.filter((line) => line.startsWith('BatchMatMul'))).toHaveLength(2);
});
