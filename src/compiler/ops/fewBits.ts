/** @file Elementwise operations for numbers that are kept in few bits: of floats, and of codes with a scale. */
import type { Attrs } from '../program/ir.js';
import { CHEAP, MAP, type MapForm } from '../rules/deviceForm.js';
import { elementwise } from '../rules/factors.js';
import { defineOperation } from '../rules/index.js';
import { expectsDtypes, FLOAT, perInputElement, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

/** Defines an operation on the elements of one float32 tensor. */
function define(
  name: string,
  dtype: 'float32' | 'int32',
  device: MapForm,
  flops: (attrs: Attrs) => number,
  meaning: (x: tf.Tensor, attrs: Attrs) => tf.Tensor,
): void {
  defineOperation(name, {
    inputs: ['x'],
    attrs: (raw) => raw as Attrs,
    infer: ([x]) => {
      expectsDtypes([x!], FLOAT);
      return [spec(x!.shape, dtype)];
    },
    flops: (inputs, _, attrs) => perInputElement(flops(attrs))(inputs),
    factors: elementwise,
    device,
    decompose: ([x], attrs) => [meaning(x!, attrs)],
  });
}

define(
  'PowerOfTwo',
  'float32',
  CHEAP,
  () => 1,
  (x) => {
    const exponent = tf.floor(tf.mul(tf.log(tf.abs(x)), Math.LOG2E));
    const power = tf.exp(tf.mul(exponent, Math.LN2));
    return tf.where(tf.isFinite(x), power, tf.fill(x.shape, Number.POSITIVE_INFINITY));
  },
);

/**
 * The greatest power of two that is at most |x|: 2^7 times the distance of bfloat16 numbers there. 0 below 2^-126, infinity
 * for what is not finite. Engines without code for it work it out by a logarithm, which may take the next power beside one.
 *
 * @param x float32 of any shape.
 */
export const powerOfTwo = (x: tf.Tensor): tf.Tensor => callComposite('PowerOfTwo', [x], {});

/** A line y = slope x + at0, with a slope other than 0. */
export interface Line {
  readonly slope: number;
  readonly at0: number;
}

const linesIn = ({ slopes, offsets }: Attrs): Line[] =>
  (slopes as number[]).map((slope, i) => ({ slope, at0: (offsets as number[])[i]! }));

const alongLines =
  (choose: (a: tf.Tensor, b: tf.Tensor) => tf.Tensor) =>
  (x: tf.Tensor, attrs: Attrs): tf.Tensor =>
    linesIn(attrs)
      .map(({ slope, at0 }) => tf.add(tf.mul(x, slope), at0))
      .reduce(choose);

const perLine = ({ slopes }: Attrs): number => 3 * (slopes as number[]).length;

define(
  'MaxAffine',
  'float32',
  MAP,
  perLine,
  alongLines((a, b) => tf.maximum(a, b)),
);
define(
  'MinAffine',
  'float32',
  MAP,
  perLine,
  alongLines((a, b) => tf.minimum(a, b)),
);

const attrsOf = (lines: readonly Line[]): Attrs => ({
  slopes: lines.map(({ slope }) => slope),
  offsets: lines.map(({ at0 }) => at0),
});

/**
 * The greatest of lines at each element: a convex piecewise linear function (Boyd and Vandenberghe, Convex Optimization,
 * 2004, 3.2.3). NaN stays NaN.
 *
 * @param x float32 of any shape.
 * @param lines one or more.
 */
export const maxAffine = (x: tf.Tensor, lines: readonly Line[]): tf.Tensor =>
  callComposite('MaxAffine', [x], attrsOf(lines));

/** The least of lines at each element: a concave piecewise linear function, as `maxAffine` is a convex one. */
export const minAffine = (x: tf.Tensor, lines: readonly Line[]): tf.Tensor =>
  callComposite('MinAffine', [x], attrsOf(lines));

define(
  'NearestInteger',
  'int32',
  MAP,
  () => 3,
  (x, { least, most }) => {
    const bounded = tf.where(tf.greater(x, least as number), x, tf.fill(x.shape, least as number));
    return tf.cast(tf.round(tf.minimum(bounded, most as number)), 'int32');
  },
);

/**
 * The nearest integer from `least` to `most`, halves to the even one; of NaN the least. It has no gradient.
 *
 * @param x float32 of any shape. @returns int32.
 */
export const nearestInteger = (x: tf.Tensor, [least, most]: readonly [number, number]): tf.Tensor =>
  callComposite('NearestInteger', [x], { least, most }, 0);
