/** @file Numbers at the edges of the compiler: roundings, signs of zero, bounds of checks, and sizes at which plans change. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { literal } from '../../src/compiler/native/c/expressions.js';
import { loopBlocksOf, partitionOf } from '../../src/compiler/native/plan/blocks.js';
import { splitOnce } from '../../src/compiler/native/plan/once.js';
import { eliminateDeadCode, mergeProducts } from '../../src/compiler/passes/index.js';
import { findBad, placeIn, problemOf } from '../../src/compiler/program/indexChecks.js';
import { roundOperand } from '../../src/compiler/program/precision.js';
import { f32, layoutOf, planOf, stageTexts } from './native/plans.js';
import { GraphBuilder } from './passes/support.js';

test('bfloat16 rounds to nearest, halves to even, keeps NaN and signs, and reaches infinity', () => {
  const bits = (word: number): number => new Float32Array(Uint32Array.of(word).buffer)[0]!;
  const rounded = (word: number): number =>
    new Uint32Array(roundOperand(Float32Array.of(bits(word)), 'bfloat16').buffer)[0]!;
  const cases: [number, number][] = [
    [0x3f808000, 0x3f800000],
    [0x3f818000, 0x3f820000],
    [0xbf808000, 0xbf800000],
    [0xbf818000, 0xbf820000],
    [0x3f808001, 0x3f810000],
    [0x3f807fff, 0x3f800000],
    [0x80000000, 0x80000000],
    [0x80000001, 0x80000000],
    [0x00018000, 0x00020000],
    [0x7f7fffff, 0x7f800000],
    [0xff7f8000, 0xff800000],
    [0x7f7f7fff, 0x7f7f0000],
    [0x7f800000, 0x7f800000],
    [0x7f800001, 0x7fc00000],
    [0xffc00001, 0xffc00000],
  ];
  expect(cases.map(([word]) => rounded(word).toString(16))).toEqual(
    cases.map(([, result]) => result.toString(16)),
  );
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (x) => {
      const [found] = roundOperand(Float32Array.of(x), 'bfloat16');
      const unit = 2 ** (Math.max(-126, Math.floor(Math.log2(Math.abs(x)))) - 7);
      const isLarge = !Number.isFinite(found!) && Math.abs(x) >= 2 ** 128 - 2 ** 119;
      return (
        isLarge ||
        (Math.abs(found! - x) <= unit / 2 + 1e-45 &&
          Object.is(roundOperand(Float32Array.of(found!), 'bfloat16')[0], found))
      );
    }),
  );
});

test('literals of C are the numbers themselves', () => {
  const cases: [number, 'float32' | 'int32' | 'bool', string][] = [
    [0, 'float32', '0.f'],
    [-0, 'float32', '-0.f'],
    [1e-45, 'float32', '1.401298464324817e-45f'],
    [0.1, 'float32', '0.10000000149011612f'],
    [2 ** 24, 'float32', '16777216.f'],
    [3.4e38, 'float32', '3.3999999521443642e+38f'],
    [1e39, 'float32', 'INFINITY'],
    [-1e39, 'float32', '-INFINITY'],
    [Number.NaN, 'float32', 'NAN'],
    [2 ** 31 - 1, 'int32', '2147483647'],
    [-(2 ** 31), 'int32', '(-2147483647 - 1)'],
    [-1, 'int32', '-1'],
    [1, 'bool', '1'],
  ];
  expect(cases.map(([value, dtype]) => literal(value, dtype))).toEqual(cases.map(([, , text]) => text));
});

test('an index is one of the rows, from the first to the last, at the positions that count', () => {
  const check = { limit: 3, what: '3 rows', positions: null, where: '' };
  expect([[0, 2], [3], [-1], [1, 2, 7]].map((ids) => findBad(check, Int32Array.from(ids)))).toEqual([
    -1, 0, 0, 2,
  ]);
  const some = { ...check, positions: Int32Array.of(1, 2) };
  expect(
    [
      [9, 2, 0],
      [0, 9, 0],
      [0, 0, -1],
    ].map((ids) => findBad(some, Int32Array.from(ids))),
  ).toEqual([-1, 1, 2]);
  expect(problemOf(3, check)).toBe('3 is not one of the 3 rows, 0 to 2');
  expect([0, 5, 6, 23].map((i) => placeIn([2, 3, 4], i))).toEqual([
    [0, 0, 0],
    [0, 1, 1],
    [0, 1, 2],
    [1, 2, 3],
  ]);
});

test('a chain has at least 48 rows', () => {
  const kinds = (rows: number) =>
    stageTexts(planOf((x, w) => tf.tanh(tf.matMul(x, w)), f32(rows, 64), f32(64, 512)))
      .map((text) => text.split(/[: ]/)[0])
      .slice(1);
  expect([kinds(47), kinds(48)]).toEqual([['narrow', 'loop'], ['chain']]);
});

test('threads divide columns of few rows, where there are many and no row must be complete', () => {
  const parted = (rows: number, columns: number, role = 'map') =>
    partitionOf({ rows, columns, nodes: [{ role }] } as never);
  expect([parted(31, 256), parted(32, 256), parted(31, 255), parted(1, 4096, 'row')]).toEqual([
    'columns',
    'rows',
    'rows',
    'rows',
  ]);
});

test('a loop that sums has some 64 blocks, none of them small', () => {
  const blocks = (rows: number, columns: number, role = 'map', period = rows) => {
    const { size, count } = loopBlocksOf({ rows, columns, nodes: [{ role, period }] } as never);
    return `${size} x ${count}`;
  };
  // Rows: at least eight, and 4,096 elements; at most 64.
  expect([blocks(100, 0), blocks(100, 64), blocks(100, 1024), blocks(767, 1024), blocks(768, 1024)]).toEqual([
    '4096 x 1',
    '64 x 2',
    '8 x 13',
    '11 x 70',
    '12 x 64',
  ]);
  expect([blocks(4096, 1024), blocks(100_000, 1024), blocks(40, 256, 'row')]).toEqual([
    '64 x 64',
    '64 x 1563',
    '16 x 3',
  ]);
  // Columns: whole cache lines, at least 256, at most 4,096.
  expect([blocks(3, 256), blocks(3, 16_385), blocks(1, 262_144), blocks(1, 1_000_000)]).toEqual([
    '256 x 1',
    '272 x 61',
    '4096 x 64',
    '4096 x 245',
  ]);
});

test('results of up to 16,384 elements are kept between runs', () => {
  const once = (size: number): number => {
    const { ops } = layoutOf((x, w) => tf.add(x, tf.exp(w)), f32(size), f32(size));
    return splitOnce(ops, new Set([1])).once.length;
  };
  expect([once(2 ** 14), once(2 ** 14 + 1)]).toEqual([1, 0]);
});

test('products merge up to 1,024 terms', () => {
  const products = (terms: number): number => {
    const g = new GraphBuilder();
    const attrs = { transposeA: true, transposeB: false, alpha: 1 };
    const product = (k: number) => g.node('BatchMatMul', [g.input([k, 2048]), g.input([k, 2048])], attrs);
    const graph = g.graph(g.node('Add', [product(512), product(terms - 512)]));
    return eliminateDeadCode(mergeProducts(graph)).nodes.filter(({ op }) => op === 'BatchMatMul').length;
  };
  expect([products(1024), products(1025)]).toEqual([1, 2]);
});
