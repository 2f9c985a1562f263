/** @file Loops: what is computed before the columns of a row, and by what it is read. */
import { expect, test } from 'vitest';
import { writeLoop } from '../../../../src/compiler/native/c/emitLoop.js';
import type { LoopUnit } from '../../../../src/compiler/native/plan/units.js';
import { compiledResults, floats, host, ops, tf } from '../../support.js';
import { hasCompiler } from '../compilerSupport.js';
import { f32, i32, planOf, unitText } from '../plans.js';

const one = () => tf.scalar(1, 'int32');

/** Rows at indices that are computed in the same loop, all of one table. */
const lookups = (table: any, ids: any) => [
  tf.gather(table, tf.add(ids, one())),
  tf.gather(table, tf.clipByValue(ids, 1, 2)),
  tf.gather(table, tf.where(tf.greater(ids, one()), ids, one())),
  ops.embeddingLookup(table, tf.cast(tf.mul(tf.cast(ids, 'float32'), 1.5), 'int32')),
];

test('a gather is in the loop that computes its indices', () => {
  const unit = planOf(lookups, f32(5, 3), i32(4)).units.map(unitText).at(-1);
  expect(unit).toMatch(/^loop 4x3 Add .* GatherV2 GatherV2 GatherV2 GatherV2$/);
});

test.skipIf(!hasCompiler)('each gather of a table reads the rows at its own computed indices', async () => {
  const inputs = [floats([5, 3]), host([4], [0, 1, 2, 3], 'int32')];
  const program = ([table, ids]: any) => lookups(table, ids);
  const actual = await compiledResults(program, inputs, { engine: 'native' });
  const expected = await compiledResults(program, inputs, { engine: 'eager' });
  expect(actual.map(({ data }) => [...data])).toEqual(expected.map(({ data }) => [...data]));
});

test('a long chain is split into loops that compile fast; repeated ones share a function', () => {
  const chain = (x: any, y: any) => {
    let value = x;
    for (let i = 0; i < 768; i++) value = tf.tanh(tf.add(value, y));
    return value;
  };
  const { units } = planOf(chain, f32(64, 64), f32(64, 64));
  const loops = units.filter((unit): unit is LoopUnit => unit.kind === 'loop');
  expect(loops.map(({ nodes }) => nodes.length)).toEqual(Array(24).fill(64));
  expect(new Set(loops.map((unit) => writeLoop(unit, false).text)).size).toBe(1);
});

/** Sums of products, as in updates by an optimizer: of two, of three, and of a square. */
const sums = (a: any, b: any, c: any) => {
  const [x, y] = [tf.mul(a, b), tf.mul(b, c)];
  const [decay, rate] = [tf.sub(1, tf.mul(tf.slice(c, 0, 1), 0.1)), tf.slice(c, 0, 1)];
  const mean = tf.add(tf.mul(a, 0.9), tf.mul(b, 0.1));
  const update = tf.div(mean, tf.add(tf.sqrt(tf.abs(b)), 1e-8));
  return [
    ...[tf.sub(x, y), tf.add(x, y), tf.addN([x, y, tf.mul(a, c)]), tf.add(tf.square(a), y), tf.add(x, c)],
    ...[mean, tf.sub(tf.mul(c, decay), tf.mul(update, rate))],
  ];
};

test('of two products that are added, the code names the one that is fused', () => {
  const text = (f: (...inputs: any[]) => any) => {
    const { units } = planOf(f, f32(64), f32(64), f32(64));
    return units.map((unit) => writeLoop(unit as LoopUnit, false).text).join();
  };
  expect(text((a, b, c) => tf.sub(tf.mul(a, b), tf.mul(b, c)))).toMatch(
    /lt_fma\(e?\w+\[j\], \w+\[j\], -v\d+\)/,
  );
  expect(text((a, b, c) => tf.add(tf.mul(a, b), c))).not.toContain('lt_fma');
  expect(text((a, b, c) => tf.add(tf.mul(a, b), tf.tanh(c)))).not.toContain('lt_fma');
});

test.skipIf(!hasCompiler)('sums of products have the same bits in loops of all lengths', async () => {
  const inputs = [1, 2, 3].map((seed) => floats([67], -1, 1, seed));
  const program = ([a, b, c]: any) => sums(a, b, c);
  const all = await compiledResults(program, inputs, { engine: 'native' });
  for (const size of [1, 3, 9]) {
    const part = inputs.map(({ data }) => host([size], data.slice(0, size)));
    const own = await compiledResults(program, part, { engine: 'native' });
    for (const [i, { data }] of own.entries())
      expect([...data], `${i}`).toEqual([...all[i]!.data.slice(0, size)]);
  }
});
