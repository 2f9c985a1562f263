/** @file Rules of reductions, of softmax, and of what sorts or accumulates along an axis. */
import * as tf from '../tfjs.js';
import type { DType, Shape } from '../types.js';
import { type OpRule, perInputElement, type RuleTable, resolveAxis, spec } from './rule.js';

function reducedShape(shape: Shape, axes: readonly number[], keepDims: boolean): number[] {
  return keepDims
    ? shape.map((dim, i) => (axes.includes(i) ? 1 : dim))
    : shape.filter((_, i) => !axes.includes(i));
}

const reduction = (result?: DType): OpRule => ({
  inputs: ['x'],
  attrs: (raw, [x]) => ({
    axes: tf.util.parseAxisParam(raw.axis ?? raw.reductionIndices, [...x!.shape]),
    keepDims: Boolean(raw.keepDims),
  }),
  infer: ([x], attrs) => [
    spec(
      reducedShape(x!.shape, attrs.axes as readonly number[], attrs.keepDims as boolean),
      result ?? x!.dtype,
    ),
  ],
  flops: perInputElement(),
});

const argReduction: OpRule = {
  inputs: ['x'],
  attrs: (raw, [x]) => ({ axis: tf.util.parseAxisParam(raw.axis, [...x!.shape])[0]! }),
  infer: ([x], attrs) => [spec(reducedShape(x!.shape, [attrs.axis as number], false), 'int32')],
  flops: perInputElement(),
};

const alongAxis = (input: string, axisName: string, flops: number): OpRule => ({
  inputs: [input],
  attrs: (raw, [x]) => ({ axis: resolveAxis(raw[axisName], x!.shape.length) }),
  infer: ([x]) => [spec(x!.shape, x!.dtype)],
  flops: perInputElement(flops),
});

export const reduceRules: RuleTable = {
  Sum: reduction(),
  Mean: {
    ...reduction(),
    infer: ([x], attrs) => [
      spec(reducedShape(x!.shape, attrs.axes as readonly number[], attrs.keepDims as boolean), 'float32'),
    ],
  },
  Max: reduction(),
  Min: reduction(),
  Prod: reduction(),
  All: reduction('bool'),
  Any: reduction('bool'),
  ArgMax: argReduction,
  ArgMin: argReduction,
  Softmax: alongAxis('logits', 'dim', 5),
  LogSoftmax: alongAxis('logits', 'axis', 5),
  Cumsum: {
    inputs: ['x'],
    attrs: (raw, [x]) => ({
      axis: resolveAxis(raw.axis, x!.shape.length),
      exclusive: Boolean(raw.exclusive),
      reverse: Boolean(raw.reverse),
    }),
    infer: ([x]) => [spec(x!.shape, x!.dtype)],
    flops: perInputElement(),
  },
  TopK: {
    inputs: ['x'],
    attrs: (raw) => ({ k: raw.k, sorted: Boolean(raw.sorted) }),
    infer: ([x], attrs) => {
      const shape = [...x!.shape.slice(0, -1), attrs.k as number];
      return [spec(shape, x!.dtype), spec(shape, 'int32')];
    },
    flops: perInputElement(),
  },
};
