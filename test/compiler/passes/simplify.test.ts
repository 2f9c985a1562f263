/** @file Simplification of hand-made graphs: the exact nodes that remain. */
import { expect, test } from 'vitest';
import { eliminateDeadCode, simplify } from '../../../src/compiler/passes/index.js';
import type { Value } from '../../../src/compiler/program/ir.js';
import { describeGraph, GraphBuilder } from './support.js';

const product = { transposeA: false, transposeB: false, alpha: 1 };

/** Simplifies the graph that `make` builds on one input of shape [2, 3], and drops what nobody reads. */
function simplified(make: (g: GraphBuilder, x: Value) => Value | Value[]): string[] {
  const g = new GraphBuilder();
  const x = g.input([2, 3]);
  return describeGraph(eliminateDeadCode(simplify(g.graph(...[make(g, x)].flat()))));
}

const one = (g: GraphBuilder): Value => g.constant([], [1]);
const zero = (g: GraphBuilder): Value => g.constant([], [0]);

const unchanged: Record<string, (g: GraphBuilder, x: Value) => Value> = {
  Identity: (g, x) => g.node('Identity', [x]),
  'Cast to the same type': (g, x) => g.node('Cast', [x], { dtype: 'float32' }),
  'Reshape to the same shape': (g, x) => g.node('Reshape', [x], { shape: [2, 3] }),
  'Transpose by the identity': (g, x) => g.node('Transpose', [x], { perm: [0, 1] }),
  'Slice of everything': (g, x) => g.node('Slice', [x], { begin: [0, 0], size: [2, 3] }),
  'Tile by ones': (g, x) => g.node('Tile', [x], { reps: [1, 1] }),
  'BroadcastTo its own shape': (g, x) => g.node('BroadcastTo', [x], { shape: [2, 3] }),
  'Concat of one': (g, x) => g.node('Concat', [x], { axis: 0 }),
  'AddN of one': (g, x) => g.node('AddN', [x]),
  'Sum over no axes': (g, x) => g.node('Sum', [x], { axes: [], keepDims: false }),
  'x + 0': (g, x) => g.node('Add', [x, zero(g)]),
  '0 + x': (g, x) => g.node('Add', [zero(g), x]),
  'x - 0': (g, x) => g.node('Sub', [x, zero(g)]),
  'x * 1': (g, x) => g.node('Multiply', [x, one(g)]),
  '1 * x, the one as wide as x': (g, x) => g.node('Multiply', [g.node('OnesLike', [x]), x]),
  'x / 1': (g, x) => g.node('RealDiv', [x, one(g)]),
  'x + ZerosLike(x)': (g, x) => g.node('Add', [x, g.node('ZerosLike', [x])]),
  'x + Fill(0)': (g, x) => g.node('Add', [x, g.node('Fill', [], { shape: [3], value: 0, dtype: 'float32' })]),
  'Reshape there and back': (g, x) =>
    g.node('Reshape', [g.node('Reshape', [x], { shape: [6] })], { shape: [2, 3] }),
  'Transpose there and back': (g, x) =>
    g.node('Transpose', [g.node('Transpose', [x], { perm: [1, 0] })], { perm: [1, 0] }),
  'a chain of them': (g, x) =>
    g.node('Multiply', [g.node('Add', [g.node('Identity', [x]), zero(g)]), one(g)]),
};

test.each(Object.entries(unchanged))('%s is x', (_, make) => {
  expect(simplified(make)).toEqual(['return in0']);
});

const kept: Record<string, (g: GraphBuilder, x: Value) => Value> = {
  '0 - x': (g, x) => g.node('Sub', [zero(g), x]),
  '1 / x': (g, x) => g.node('RealDiv', [one(g), x]),
  'x + 0 where the zeros widen x': (g, x) => g.node('Add', [x, g.constant([2, 2, 3], new Array(12).fill(0))]),
  'Cast to another type': (g, x) => g.node('Cast', [x], { dtype: 'int32' }),
  'Slice of a part': (g, x) => g.node('Slice', [x], { begin: [0, 1], size: [2, 2] }),
  'x + (0, 0, 1)': (g, x) => g.node('Add', [x, g.constant([3], [0, 0, 1])]),
  // 1 / -0 is not 1 / 0.
  'x / (0, 0, -0)': (g, x) => g.node('RealDiv', [x, g.constant([3], [0, 0, -0])]),
  'Mean of int32 over no axes': (g) => g.node('Mean', [g.input([2], 'int32')], { axes: [], keepDims: false }),
};

test.each(Object.entries(kept))('%s stays', (_, make) => {
  expect(simplified(make).length).toBe(2);
});

test('a view of a product keeps its factor outside where that widens it', () => {
  const nodes = simplified((g, x) => {
    const view = g.node('Reshape', [g.node('BatchMatMul', [x, g.input([3, 1])], product)], { shape: [2] });
    return g.node('Multiply', [view, g.constant([3, 2], new Array(6).fill(2))]);
  });
  expect(nodes.map((node) => node.split(' ')[0])).toEqual(['BatchMatMul', 'Reshape', 'Multiply', 'return']);
});

test('views of views are merged', () => {
  expect(
    simplified((g, x) => {
      const a = g.node('Reshape', [x], { shape: [6] });
      const b = g.node('ExpandDims', [a], { shape: [1, 6] });
      return g.node('Reshape', [b], { shape: [3, 2] });
    }),
  ).toEqual(['Reshape in0 shape=3,2 -> #0', 'return #0']);
  expect(
    simplified((g, x) => {
      const y = g.node('Reshape', [x], { shape: [1, 2, 3] });
      const a = g.node('Transpose', [y], { perm: [1, 2, 0] });
      return g.node('Transpose', [a], { perm: [0, 2, 1] });
    }),
  ).toEqual(['Reshape in0 shape=1,2,3 -> #0', 'Transpose #0 perm=1,0,2 -> #1', 'return #1']);
});

test('a reduction over axes of size 1 is a reshape', () => {
  expect(simplified((g) => g.node('Sum', [g.input([1, 4])], { axes: [0], keepDims: false }))).toEqual([
    'Reshape in1 shape=4 -> #0',
    'return #0',
  ]);
});

test('transposes and factors go into the product', () => {
  expect(
    simplified((g, x) => {
      const t = g.node('Transpose', [x], { perm: [1, 0] });
      const p = g.node('BatchMatMul', [t, x], product);
      return g.node('Multiply', [g.constant([], [0.5]), p]);
    }),
  ).toEqual(['BatchMatMul in0 in0 transposeA=true transposeB=false alpha=0.5 -> #0', 'return #0']);
  expect(
    simplified((g, x) =>
      g.node('BatchMatMul', [g.node('Transpose', [x], { perm: [1, 0] }), x], {
        ...product,
        transposeA: true,
        transposeB: true,
      }),
    ),
  ).toEqual(['BatchMatMul in0 in0 transposeA=false transposeB=true alpha=1 -> #0', 'return #0']);
});

test('a batch times one matrix becomes one product of all rows, with its factor', () => {
  const rows = (g: GraphBuilder, attrs = {}) =>
    g.node('BatchMatMul', [g.input([5, 2, 4]), g.input([3, 4])], { ...product, transposeB: true, ...attrs });
  expect(simplified((g) => g.node('Multiply', [g.constant([], [2]), rows(g)]))).toEqual([
    'Reshape in1 shape=10,4 -> #0',
    'BatchMatMul #0 in2 transposeA=false transposeB=true alpha=2 -> #1',
    'Reshape #1 shape=5,2,3 -> #2',
    'return #2',
  ]);
  expect(
    simplified((g) => g.node('BatchMatMul', [g.input([7, 5, 2, 4]), g.input([1, 1, 4, 3])], product)),
  ).toEqual([
    'Reshape in1 shape=70,4 -> #0',
    'Reshape in2 shape=4,3 -> #1',
    'BatchMatMul #0 #1 transposeA=false transposeB=false alpha=1 -> #2',
    'Reshape #2 shape=7,5,2,3 -> #3',
    'return #3',
  ]);
});

test('a sum of batch products becomes one product over all rows', () => {
  const sum = (g: GraphBuilder, axes: number[], attrs = {}) => {
    const products = g.node('BatchMatMul', [g.input([5, 4, 2]), g.input([5, 4, 3])], {
      ...product,
      transposeA: true,
      ...attrs,
    });
    return g.node('Sum', [products], { axes, keepDims: false });
  };
  expect(simplified((g) => sum(g, [0]))).toEqual([
    'Reshape in1 shape=20,2 -> #0',
    'Reshape in2 shape=20,3 -> #1',
    'BatchMatMul #0 #1 transposeA=true transposeB=false alpha=1 -> #2',
    'return #2',
  ]);
  expect(simplified((g) => sum(g, [1])).length).toBe(3);
});

test('a batch with a matrix for each item, or with columns for rows, stays a batch', () => {
  const batches: ((g: GraphBuilder) => Value)[] = [
    (g) => g.node('BatchMatMul', [g.input([5, 2, 4]), g.input([5, 4, 3])], product),
    (g) => g.node('BatchMatMul', [g.input([4, 2]), g.input([5, 4, 3])], { ...product, transposeA: true }),
    (g) => g.node('BatchMatMul', [g.input([5, 4, 2]), g.input([4, 3])], { ...product, transposeA: true }),
  ];
  for (const batch of batches) expect(simplified(batch).length).toBe(2);
});

test('a product with two readers keeps its factor outside', () => {
  expect(
    simplified((g, x) => {
      const p = g.node('BatchMatMul', [x, x], { ...product, transposeB: true });
      return [g.node('Multiply', [p, g.constant([], [2])]), p];
    }),
  ).toEqual([
    'BatchMatMul in0 in0 transposeA=false transposeB=true alpha=1 -> #0',
    'Multiply #0 2 -> #1',
    'return #1 #0',
  ]);
});

test('a product with two readers through an identity keeps its factor outside', () => {
  expect(
    simplified((g, x) => {
      const p = g.node('BatchMatMul', [x, x], { ...product, transposeB: true });
      const same = g.node('Identity', [p]);
      return [g.node('Multiply', [same, g.constant([], [2])]), same];
    }),
  ).toEqual([
    'BatchMatMul in0 in0 transposeA=false transposeB=true alpha=1 -> #0',
    'Multiply #0 2 -> #1',
    'return #1 #0',
  ]);
});

test('a product with one reader, through views that cancel, absorbs the factor', () => {
  expect(
    simplified((g, x) => {
      const p = g.node('BatchMatMul', [x, x], { ...product, transposeB: true });
      const there = g.node('Reshape', [p], { shape: [4] });
      return g.node('Multiply', [g.node('Reshape', [there], { shape: [2, 2] }), g.constant([], [2])]);
    }),
  ).toEqual(['BatchMatMul in0 in0 transposeA=false transposeB=true alpha=2 -> #0', 'return #0']);
});

test('nested factors are merged, and equal elements become a scalar', () => {
  expect(
    simplified((g, x) => {
      const a = g.node('Multiply', [x, g.constant([], [3])]);
      return g.node('Multiply', [g.constant([], [0.5]), a]);
    }),
  ).toEqual(['Multiply in0 1.5 -> #0', 'return #0']);
  expect(
    simplified((g, x) =>
      g.node('Maximum', [x, g.node('Fill', [], { shape: [2, 3], value: 4, dtype: 'float32' })]),
    ),
  ).toEqual(['Maximum in0 4 -> #0', 'return #0']);
  // Integers may overflow on the way: they are left alone.
  expect(
    simplified((g) => {
      const x = g.input([2], 'int32');
      const two = g.constant([], [2], 'int32');
      return g.node('Multiply', [g.node('Multiply', [x, two]), two]);
    }).length,
  ).toBe(3);
});

test('a scalar condition selects between whole tensors without broadcasting', () => {
  expect(
    simplified((g, x) => {
      const one = g.node('Reshape', [g.input([], 'bool')], { shape: [1, 1] });
      return g.node('Select', [g.node('Tile', [one], { reps: [2, 3] }), x, g.node('Neg', [x])]);
    }),
  ).toEqual(['Neg in0 -> #0', 'Select in1 in0 #0 -> #1', 'return #1']);
});

test('a choice broadcasts its operands by itself, beside one of the full shape; copies side by side stay', () => {
  const tiled = (g: GraphBuilder, shape: number[], reps: number[], dtype: 'bool' | 'float32' = 'float32') =>
    g.node('Tile', [g.input(shape, dtype)], { reps });
  expect(
    simplified((g, x) => g.node('Select', [tiled(g, [2, 1], [1, 3], 'bool'), x, tiled(g, [1, 3], [2, 1])])),
  ).toEqual(['Select in1 in0 in2 -> #0', 'return #0']);
  // Nothing else is as large as the result.
  const none = simplified((g) =>
    g.node('Select', [tiled(g, [2, 1], [1, 3], 'bool'), tiled(g, [2, 1], [1, 3]), g.input([1])]),
  );
  expect(none.filter((line) => line.startsWith('Tile'))).toHaveLength(1);
  const copies = simplified((g, x) =>
    g.node('Select', [g.input([4, 3], 'bool'), g.node('Tile', [x], { reps: [2, 1] }), g.input([4, 3])]),
  );
  expect(copies.filter((line) => line.startsWith('Tile'))).toHaveLength(1);
});
