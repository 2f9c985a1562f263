/** @file Sums that turns of a loop add to stay in one place, and products are added to them as they are multiplied. */
import { expect, test } from 'vitest';
import { unitsText } from '../../../../src/compiler/native/dump/unitText.js';
import { writesOf } from '../../../../src/compiler/native/plan/units.js';
import { rootOf } from '../../../../src/compiler/native/plan/views.js';
import { ops } from '../../support.js';
import { f32, planOf, type Traced, tf } from '../plans.js';

/** The last carry of a loop whose turns make it from the old one and the products of x's slices with w. */
const looped =
  (next: (carry: any, product: any) => any): Traced =>
  (x, w, start) =>
    ops.scan(
      (carry: any, slice: any) => [next(carry, tf.matMul(slice, w, true)), []] as any,
      start,
      x,
    )[0] as any;

/** The plan of five turns, and the elements of the memory that the carry lies in. */
const planned = (next: (carry: any, product: any) => any) => {
  const plan = planOf(looped(next), f32(5, 64, 96), f32(64, 80), f32(96, 80));
  const carries = plan.units
    .flatMap(writesOf)
    .map(rootOf)
    .filter(({ pinned }) => pinned);
  return { text: unitsText(plan.units), elements: Math.max(...carries.map(({ size }) => size)) };
};

test('a product is added in place to what nothing else reads', () => {
  const { text, elements } = planned((carry, product) => tf.add(carry, product));
  expect(text).toMatch(/product, float32: %\d+\[96,80\] \+= %\d+\[96,64\]:\(1,96\) x in1\[64,80\]/);
  expect(text).not.toContain('Add');
  expect(elements).toBe(96 * 80);
});

test('so is anything else, in a loop over its elements', () => {
  const { text, elements } = planned((carry, product) => tf.add(tf.tanh(product), carry));
  expect(text).toContain('Add');
  expect(text).not.toContain('+=');
  expect(elements).toBe(96 * 80);
});

test('a carry that is read otherwise, or more than once, has a place for each turn', () => {
  for (const next of [
    (carry: any, product: any) => tf.mul(carry, product),
    (carry: any, product: any) => tf.add(carry, tf.mul(product, tf.sum(carry))),
  ]) {
    const { text, elements } = planned(next);
    expect(text).not.toContain('+=');
    expect(elements).toBe(2 * 96 * 80);
  }
});

test('a product that is repeated over the rows of a carry is added in a loop over its elements', () => {
  const f: Traced = (x, w, start) =>
    ops.scan((carry: any, row: any) => [tf.add(carry, tf.matMul(row, w)), []] as any, start, x)[0] as any;
  const text = unitsText(planOf(f, f32(5, 1, 96), f32(96, 80), f32(64, 80)).units);
  expect(text).toContain('Add');
  expect(text).not.toContain('+=');
});
