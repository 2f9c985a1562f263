/** @file What operations give for special values, one table for the guide's page and for the suite over all engines. */
import type { DType, Tensor } from '../../../src/compiler/index.js';
import { ops, tf } from '../support.js';

/** Operands, the result, and what tfjs's cpu backend gives where that is another. */
export type Values = readonly [operands: readonly number[], result: number, tfjs?: number];

/** One operation over special values. */
export interface SpecialRow {
  /** As the page has it. */
  readonly call: string;
  readonly f: (...operands: any[]) => Tensor;
  /** Of the operands. */
  readonly dtype: DType;
  readonly values: readonly Values[];
}

/** Rows under one heading of the page. */
export interface Section {
  readonly title: string;
  /** What holds for all of them. */
  readonly text: string;
  readonly rows: readonly SpecialRow[];
}

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const [least, most] = [-(2 ** 31), 2 ** 31 - 1];
const large = 3.4e38;
const subnormal = 1e-40;

const floats = (call: string, f: SpecialRow['f'], values: readonly Values[]): SpecialRow => ({
  call,
  f,
  dtype: 'float32',
  values,
});
const ints = (call: string, f: SpecialRow['f'], values: readonly Values[]): SpecialRow => ({
  call,
  f,
  dtype: 'int32',
  values,
});

/** The first of two elements' place. */
const pair = (f: (x: any, axis: number) => Tensor) => (a: any, b: any) => f(tf.stack([a, b], 1), 1);

/** The largest along the last axis, or its place. */
const first = (part: 'values' | 'indices') => (x: any) => tf.reshape(tf.topk(x, 1)[part], [-1]);
const truth = (x: any): Tensor => tf.cast(x, 'bool');
/** The last element of each row. */
const last = (x: Tensor): Tensor => tf.unstack(x, 1).at(-1)!;
/** The first element of each row. */
const head = (x: Tensor): Tensor => tf.unstack(x, 1)[0]!;

const sign: SpecialRow[] = [
  floats('neg(x)', tf.neg, [
    [[0], -0],
    [[nan], nan],
  ]),
  floats('abs(x)', tf.abs, [
    [[-0], 0],
    [[-inf], inf],
    [[nan], nan],
  ]),
  floats('sign(x)', tf.sign, [
    [[-0], 0],
    [[-inf], -1],
    [[nan], nan, 0],
  ]),
  floats('maximum(a, b)', tf.maximum, [
    [[nan, 1], nan],
    [[1, nan], nan],
    [[-inf, inf], inf],
    [[0, -0], 0],
  ]),
  floats('minimum(a, b)', tf.minimum, [
    [[nan, 1], nan],
    [[1, nan], nan],
    [[-inf, inf], -inf],
    [[0, -0], 0],
  ]),
  floats('clipByValue(x, -1, 1)', (x) => tf.clipByValue(x, -1, 1), [
    [[inf], 1],
    [[-inf], -1],
    [[nan], nan],
  ]),
  floats('greater(a, b)', tf.greater, [
    [[nan, 1], 0],
    [[1, nan], 0],
    [[0, -0], 0],
    [[inf, large], 1],
  ]),
  floats('greaterEqual(a, b)', tf.greaterEqual, [
    [[nan, nan], 0],
    [[0, -0], 1],
    [[-inf, -inf], 1],
  ]),
  floats('less(a, b)', tf.less, [
    [[nan, 1], 0],
    [[1, nan], 0],
    [[-0, 0], 0],
    [[-inf, inf], 1],
  ]),
  floats('lessEqual(a, b)', tf.lessEqual, [
    [[nan, 1], 0],
    [[1, nan], 0],
    [[0, -0], 1],
  ]),
  floats('equal(a, b)', tf.equal, [
    [[nan, nan], 0],
    [[0, -0], 1],
    [[inf, inf], 1],
  ]),
  floats('notEqual(a, b)', tf.notEqual, [
    [[nan, nan], 1],
    [[0, -0], 0],
  ]),
  floats('where(greater(x, 0), x, 2)', (x) => tf.where(tf.greater(x, 0), x, tf.scalar(2)), [
    [[nan], 2],
    [[inf], inf],
  ]),
  floats('argMax([a, b])', pair(tf.argMax), [
    [[1, 1], 0],
    [[0, nan], 1, 0],
    [[nan, 1], 0],
    [[-inf, -inf], 0],
  ]),
  floats('argMin([a, b])', pair(tf.argMin), [
    [[1, 1], 0],
    [[0, nan], 1, 0],
    [[nan, -1], 0],
  ]),
  floats('topk([a, b], 1).values', pair(first('values')), [
    [[0, nan], nan, 0],
    [[inf, nan], nan, inf],
    [[nan, inf], nan],
    [[-inf, -inf], -inf],
  ]),
  floats('topk([a, b], 1).indices', pair(first('indices')), [
    [[1, 1], 0],
    [[0, -0], 0],
    [[large, inf], 1],
    [[inf, nan], 1, 0],
    [[nan, inf], 0],
    [[nan, nan], 0],
  ]),
  floats('max([a, b])', pair(tf.max), [
    [[nan, 1], nan],
    [[1, nan], nan],
    [[-inf, -inf], -inf],
  ]),
  floats('min([a, b])', pair(tf.min), [
    [[nan, 1], nan],
    [[1, nan], nan],
    [[inf, inf], inf],
  ]),
];

const rounding: SpecialRow[] = [
  floats('round(x)', tf.round, [
    [[0.5], 0],
    [[1.5], 2],
    [[2.5], 2],
    [[-0.5], -0, 0],
    [[-1.5], -2],
    [[8388609], 8388609],
    [[-inf], -inf],
    [[nan], nan],
  ]),
  floats('floor(x)', tf.floor, [
    [[-0.5], -1],
    [[-0], -0],
    [[nan], nan],
  ]),
  floats('ceil(x)', tf.ceil, [
    [[-0.5], -0],
    [[nan], nan],
  ]),
  floats("cast(x, 'int32')", (x) => tf.cast(x, 'int32'), [
    [[1.9], 1],
    [[-1.9], -1],
    [[nan], 0],
    [[inf], 0],
    [[-inf], 0],
    [[3e9], -1294967296],
    [[-3e9], 1294967296],
    [[2 ** 31], least],
    [[2 ** 40], 0],
    [[1e30], 0],
  ]),
  floats('logicalNot(x)', (x) => tf.logicalNot(truth(x)), [
    [[nan], 0],
    [[-0], 1],
  ]),
  floats('logicalAnd(a, b)', (a, b) => tf.logicalAnd(truth(a), truth(b)), [
    [[nan, 1], 1],
    [[nan, 0], 0],
  ]),
  floats('logicalOr(a, b)', (a, b) => tf.logicalOr(truth(a), truth(b)), [
    [[nan, 0], 1],
    [[-0, 0], 0],
  ]),
  floats('all([a, b])', (a, b) => tf.all(tf.stack([truth(a), truth(b)], 1), 1), [
    [[nan, 1], 1],
    [[nan, -0], 0],
  ]),
  floats('any([a, b])', (a, b) => tf.any(tf.stack([truth(a), truth(b)], 1), 1), [
    [[nan, 0], 1],
    [[-0, 0], 0],
  ]),
  floats("cast(x, 'bool')", (x) => tf.cast(x, 'bool'), [
    [[0], 0],
    [[-0], 0],
    [[0.1], 1],
    [[subnormal], 1],
    [[nan], 1],
  ]),
];

const arithmetic: SpecialRow[] = [
  floats('add(a, b)', tf.add, [
    [[inf, -inf], nan],
    [[large, large], inf],
    [[nan, 1], nan],
  ]),
  floats('mul(a, b)', tf.mul, [
    [[inf, 0], nan],
    [[large, -2], -inf],
    [[1, nan], nan],
  ]),
  floats('div(a, b)', tf.div, [
    [[1, 0], inf],
    [[1, -0], -inf],
    [[-1, 0], -inf],
    [[0, 0], nan],
    [[inf, inf], nan],
    [[1, inf], 0],
  ]),
  floats('floorDiv(a, b)', tf.floorDiv, [
    [[-7, 2], -4],
    [[1, 0], 0],
    [[0, 0], 0],
    [[3e9, 1], -1294967296],
  ]),
  floats('mod(a, b)', tf.mod, [
    [[-7, 3], 2],
    [[7, -3], -2],
    [[5.5, 2], 1.5],
    [[1, 0], nan],
    [[inf, 2], nan],
    [[2, inf], 2],
    [[2, -inf], -inf, nan],
    [[nan, 2], nan],
  ]),
  floats('sqrt(x)', tf.sqrt, [
    [[-0], -0],
    [[-1], nan],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('rsqrt(x)', tf.rsqrt, [
    [[0], inf],
    [[inf], 0],
    [[-1], nan],
  ]),
  floats('reciprocal(x)', tf.reciprocal, [
    [[0], inf],
    [[-0], -inf],
    [[-inf], -0],
  ]),
  floats('squaredDifference(a, b)', tf.squaredDifference, [
    [[inf, inf], nan],
    [[-inf, 1], inf],
    [[large, -large], inf],
  ]),
  floats('addN([a, b])', (a, b) => tf.addN([a, b]), [
    [[inf, -inf], nan],
    [[large, large], inf],
    [[nan, 1], nan],
  ]),
  floats('square(x)', tf.square, [
    [[-inf], inf],
    [[3e38], inf],
    [[nan], nan],
  ]),
  floats('pow(a, b)', tf.pow, [
    [[0, 0], 1],
    [[nan, 0], 1],
    [[1, nan], 1, nan],
    [[-1, inf], 1, nan],
    [[2, nan], nan],
    [[-2, 3], -8],
    [[-2, 0.5], nan],
    [[0, -1], inf],
    [[-0, -1], -inf],
    [[-0, 3], -0],
    [[0.5, inf], 0],
    [[2, -inf], 0],
    [[-inf, 3], -inf],
    [[-inf, 0.5], inf],
    [[10, 39], inf],
  ]),
];

const functions: SpecialRow[] = [
  floats('exp(x)', tf.exp, [
    [[-0], 1],
    [[inf], inf],
    [[-inf], 0],
    [[88.8], inf],
    [[-100], Math.exp(-100)],
    [[-200], 0],
    [[nan], nan],
  ]),
  floats('expm1(x)', tf.expm1, [
    [[1e-8], 1e-8],
    [[-0], -0],
    [[-inf], -1],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('log(x)', tf.log, [
    [[0], -inf],
    [[-0], -inf],
    [[-1], nan],
    [[subnormal], Math.log(Math.fround(subnormal))],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('log1p(x)', tf.log1p, [
    [[1e-8], 1e-8],
    [[-1], -inf],
    [[-2], nan],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('sin(x)', tf.sin, [
    [[-0], -0],
    [[1e5], Math.sin(1e5)],
    [[1e10], Math.sin(1e10)],
    [[-1e20], -Math.sin(Math.fround(1e20))],
    [[large], Math.sin(Math.fround(large))],
    [[inf], nan],
    [[nan], nan],
  ]),
  floats('cos(x)', tf.cos, [
    [[0], 1],
    [[1e20], Math.cos(Math.fround(1e20))],
    [[-large], Math.cos(Math.fround(large))],
    [[-inf], nan],
    [[nan], nan],
  ]),
  floats('tanh(x)', tf.tanh, [
    [[-0], -0],
    [[1e-30], 1e-30],
    [[20], 1],
    [[-inf], -1],
    [[nan], nan],
  ]),
  floats('tan(x)', tf.tan, [
    [[-0], -0],
    [[1e-30], 1e-30],
    [[1.5707964], Math.tan(Math.fround(1.5707964))],
    [[1e5], Math.tan(1e5)],
    [[inf], nan],
    [[nan], nan],
  ]),
  floats('asin(x)', tf.asin, [
    [[-0], -0],
    [[1e-30], 1e-30],
    [[-1], -Math.PI / 2],
    [[1.0000001], nan],
    [[nan], nan],
  ]),
  floats('acos(x)', tf.acos, [
    [[1], 0],
    [[-1], Math.PI],
    [[0.9999999], Math.acos(Math.fround(0.9999999))],
    [[-1.0000001], nan],
    [[nan], nan],
  ]),
  floats('atan(x)', tf.atan, [
    [[-0], -0],
    [[1e-30], 1e-30],
    [[-inf], -Math.PI / 2],
    [[large], Math.PI / 2],
    [[nan], nan],
  ]),
  floats('atan2(y, x)', tf.atan2, [
    [[0, -0], Math.PI],
    [[-0, -0], -Math.PI],
    [[-0, 0], -0],
    [[-1, 0], -Math.PI / 2],
    [[inf, -inf], 0.75 * Math.PI],
    [[-1, inf], -0],
    [[1, -inf], Math.PI],
    [[large, 1e-30], Math.PI / 2],
    [[1e-30, -large], Math.PI],
    [[nan, 1], nan],
    [[1, nan], nan],
  ]),
  floats('sinh(x)', tf.sinh, [
    [[-0], -0],
    [[1e-8], 1e-8],
    [[89.3], Math.sinh(Math.fround(89.3))],
    [[-90], -inf],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('cosh(x)', tf.cosh, [
    [[-0], 1],
    [[-89.3], Math.cosh(Math.fround(89.3))],
    [[90], inf],
    [[-inf], inf],
    [[nan], nan],
  ]),
  floats('asinh(x)', tf.asinh, [
    [[-0], -0],
    [[1e-8], 1e-8],
    [[-large], -Math.asinh(Math.fround(large))],
    [[-inf], -inf],
    [[nan], nan],
  ]),
  floats('acosh(x)', tf.acosh, [
    [[1], 0],
    [[1.0000001], Math.acosh(Math.fround(1.0000001))],
    [[large], Math.acosh(Math.fround(large))],
    [[0.5], nan],
    [[-inf], nan],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('atanh(x)', tf.atanh, [
    [[-0], -0],
    [[1e-8], 1e-8],
    [[-1], -inf],
    [[0.9999999], Math.atanh(Math.fround(0.9999999))],
    [[1.5], nan],
    [[inf], nan],
    [[nan], nan],
  ]),
  floats('selu(x)', tf.selu, [
    [[-1e-9], -1.7580993e-9],
    [[-inf], -1.7580993408473768],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('prelu(x, a)', tf.prelu, [
    [[-inf, 0], nan],
    [[inf, 0], inf],
    [[-0, 2], -0],
    [[nan, 1], nan],
    [[1, nan], 1],
  ]),
  floats('sigmoid(x)', tf.sigmoid, [
    [[-0], 0.5],
    [[inf], 1],
    [[-inf], 0],
    [[-100], Math.exp(-100)],
    [[nan], nan],
  ]),
  floats('softplus(x)', tf.softplus, [
    [[100], 100],
    [[-30], Math.exp(-30)],
    [[inf], inf],
    [[-inf], 0],
    [[nan], nan],
  ]),
  floats('erf(x)', tf.erf, [
    [[inf], 1],
    [[-inf], -1],
    [[nan], nan],
  ]),
  floats('ops.gelu(x)', (x) => ops.gelu(x), [
    [[-0], -0],
    [[inf], inf],
    [[-inf], nan],
    [[nan], nan],
  ]),
  floats('relu(x)', tf.relu, [
    [[-inf], 0],
    [[-0], 0],
    [[nan], nan],
  ]),
  floats('relu6(x)', tf.relu6, [
    [[inf], 6],
    [[-inf], 0],
    [[nan], nan],
  ]),
  floats('leakyRelu(x, 0.2)', (x) => tf.leakyRelu(x, 0.2), [
    [[-inf], -inf],
    [[nan], nan],
  ]),
  floats('elu(x)', tf.elu, [
    [[-inf], -1],
    [[inf], inf],
    [[nan], nan],
  ]),
  floats('step(x)', tf.step, [
    [[0], 0],
    [[inf], 1],
    [[nan], nan],
  ]),
  floats('isNaN(x)', tf.isNaN, [
    [[nan], 1],
    [[inf], 0],
  ]),
  floats('isInf(x)', tf.isInf, [
    [[nan], 0],
    [[-inf], 1],
    [[3.4e38], 0],
  ]),
  floats('isFinite(x)', tf.isFinite, [
    [[nan], 0],
    [[-inf], 0],
    [[large], 1],
  ]),
  floats('softmax([a, b])[0]', (a, b) => tf.unstack(tf.softmax(tf.stack([a, b], 1)), 1)[0]!, [
    [[1000, -1000], 1],
    [[-inf, 0], 0],
    [[-inf, -inf], nan],
    [[inf, 0], nan],
    [[nan, 0], nan],
  ]),
];

const integers: SpecialRow[] = [
  ints('add(a, b)', tf.add, [[[most, 1], least]]),
  ints('sub(a, b)', tf.sub, [[[least, 1], most]]),
  ints('mul(a, b)', tf.mul, [
    [[65536, 65536], 0],
    [[65536, 32768], least],
    [[most, most], 1, 0],
  ]),
  ints('square(x)', tf.square, [[[65536], 0]]),
  ints('bitwiseAnd(a, b)', tf.bitwiseAnd, [
    [[-1, 6], 6],
    [[least, most], 0],
  ]),
  ints('neg(x)', tf.neg, [[[least], least]]),
  ints('abs(x)', tf.abs, [[[least], least]]),
  ints('floorDiv(a, b)', tf.floorDiv, [
    [[-7, 2], -4],
    [[7, -2], -4],
    [[1, 0], 0],
    [[-1, 0], 0],
    [[least, -1], least],
    [[most, -1], -most],
  ]),
  ints('mod(a, b)', tf.mod, [
    [[-7, 3], 2],
    [[7, -3], -2],
    [[7, 0], 0],
    [[least, -1], 0],
  ]),
  ints('pow(a, b)', tf.pow, [
    [[2, 31], least],
    [[3, 2], 9],
    [[2, -1], 0],
    [[0, 0], 1],
    [[-1, -3], -1],
  ]),
  ints('maximum(a, b)', tf.maximum, [[[least, most], most]]),
  ints('sum([a, b])', pair(tf.sum), [[[most, 1], least]]),
  ints('prod([a, b])', pair(tf.prod), [[[65536, 65536], 0]]),
  ints(
    'cumsum([a, b])[1]',
    pair((x) => last(tf.cumsum(x, 1))),
    [[[most, 1], least]],
  ),
  ints('oneHot(x, 2)[1]', (x) => last(tf.oneHot(x, 2)), [
    [[1], 1],
    [[0], 0],
    [[2], 0],
    [[-1], 0],
  ]),
  ints('round(x)', tf.round, [[[most], most]]),
  ints('relu(x)', tf.relu, [
    [[least], 0],
    [[most], most],
  ]),
  ints('relu6(x)', tf.relu6, [
    [[-1], 0],
    [[most], 6],
  ]),
  ints('step(x)', tf.step, [
    [[-1], 0],
    [[most], 1],
  ]),
  ints('sign(x)', tf.sign, [[[least], -1]]),
  ints('exp(x)', tf.exp, [
    [[0], 1],
    [[-200], 0],
  ]),
  ints("cast(x, 'float32')", (x) => tf.cast(x, 'float32'), [[[most], 2 ** 31]]),
  ints("cast(x, 'bool')", (x) => tf.cast(x, 'bool'), [
    [[-1], 1],
    [[0], 0],
  ]),
];

const cells = (x: Tensor) => tf.reshape(x, [-1, 1, 1]);
const segments = (a: any, b: any) =>
  tf.reshape(tf.unsortedSegmentSum(tf.stack([a, b]), tf.zeros([2], 'int32') as tf.Tensor1D, 1), [-1]);
/** Each a as the only row, times its b; a group of so many rows. */
const grouped = (a: Tensor, b: Tensor, size: number) => {
  const rows = a.shape[0]!;
  const sizes = tf.fill([rows], size, 'int32') as Tensor;
  return tf.reshape(ops.groupedMatMul(tf.reshape(a, [rows, 1]), cells(b), sizes), [-1]);
};
/** A window over both elements. */
const pooled = (pool: typeof tf.maxPool) => (a: any, b: any) =>
  tf.reshape(pool(tf.reshape(tf.stack([a, b], 1), [-1, 1, 2, 1]) as tf.Tensor4D, [1, 2], 1, 'valid'), [-1]);
const convolved = (a: any, b: any) =>
  tf.reshape(
    tf.conv1d(
      tf.reshape(tf.stack([a, b], 1), [-1, 2, 1]) as tf.Tensor3D,
      tf.tensor3d([1, 0], [2, 1, 1]),
      1,
      'valid',
    ),
    [-1],
  );

const sums: SpecialRow[] = [
  floats('mean([a, b])', pair(tf.mean), [
    [[nan, 1], nan],
    [[inf, -inf], nan],
    [[-inf, 1], -inf],
  ]),
  floats(
    'cumsum([a, b])[1]',
    pair((x) => last(tf.cumsum(x, 1))),
    [
      [[nan, 1], nan],
      [[inf, -inf], nan],
      [[large, large], inf],
    ],
  ),
  floats('unsortedSegmentSum([a, b], [0, 0], 1)', segments, [
    [[nan, 1], nan],
    [[inf, -inf], nan],
    [[large, large], inf],
  ]),
  floats('matMul([[a]], [[b]])', (a, b) => tf.reshape(tf.matMul(cells(a), cells(b)), [-1]), [
    [[inf, 0], nan],
    [[0, nan], nan],
    [[large, -2], -inf],
  ]),
  floats('groupedMatMul([[a]], [[[b]]], [1])', (a, b) => grouped(a, b, 1), [
    [[inf, 0], nan],
    [[0, nan], nan],
    [[large, -2], -inf],
  ]),
  floats('groupedMatMul([[a]], [[[b]]], [0])', (a, b) => grouped(a, b, 0), [[[nan, inf], 0]]),
  floats('maxPool([a, b])', pooled(tf.maxPool), [
    [[nan, 1], nan, 1],
    [[1, nan], nan, 1],
    [[-inf, -inf], -inf],
  ]),
  floats('avgPool([a, b])', pooled(tf.avgPool), [
    [[nan, 1], nan],
    [[inf, -inf], nan],
  ]),
  floats('conv1d([a, b], [1, 0])', convolved, [
    [[1, nan], nan],
    [[1, inf], nan],
    [[inf, 1], inf],
  ]),
  floats(
    'logSoftmax([a, b])[0]',
    pair((x) => head(tf.logSoftmax(x))),
    [
      [[1000, -1000], 0],
      [[-1000, 1000], -2000],
      [[-inf, 0], -inf],
      [[-inf, -inf], nan],
      [[inf, 0], nan],
      [[0, nan], nan],
    ],
  ),
  floats(
    'ops.softmaxCrossEntropy([a, b], 0)',
    pair((x) => ops.softmaxCrossEntropy(x, tf.zeros([x.shape[0]], 'int32'))),
    [
      [[1000, -1000], 0],
      [[-1000, 1000], 2000],
      [[-inf, 0], inf],
      [[0, nan], nan],
    ],
  ),
  floats(
    'ops.layerNorm([a, b])[0]',
    pair((x) => head(ops.layerNorm(x, null, null, { epsilon: 1e-6 }))),
    [
      [[1, 1], 0],
      [[0, nan], nan],
      [[0, inf], nan],
    ],
  ),
  floats(
    'ops.rmsNorm([a, b])[0]',
    pair((x) => head(ops.rmsNorm(x, null, { epsilon: 1e-6 }))),
    [
      [[0, 0], 0],
      [[0, nan], nan],
      [[inf, 0], nan],
    ],
  ),
];

export const SECTIONS: readonly Section[] = [
  {
    title: 'Order and comparison',
    text: 'NaN is unequal to everything, and `max` and `min` propagate it. Either of 0 and −0 may count as the larger.',
    rows: sign,
  },
  {
    title: 'Rounding and casts',
    text:
      'Halves round to even. A cast to int32 truncates and wraps modulo 2³², as in JavaScript; NaN and infinities become 0. ' +
      'A cast to bool is false only for zeros.',
    rows: rounding,
  },
  {
    title: 'Arithmetic of float32',
    text: 'As in IEEE 754. `floorDiv` gives an int32, cast as above; `mod` has the sign of the divisor.',
    rows: arithmetic,
  },
  {
    title: 'Functions of float32',
    text:
      'A subnormal result, smaller than 1.2e-38, may become 0. Otherwise errors are below 1e-6 of the result, and below ' +
      '1e-6 absolute for `sin` and `cos`, for angles of any size. The largest error of a Fourier transform, of any length ' +
      'up to 65536, was 1.4e-6 of the mean size of its results.',
    rows: functions,
  },
  {
    title: 'Sums, products, norms and the loss',
    text:
      'NaN propagates through all of them. A segment sum multiplies by zeros on ONNX Runtime and tfjs, where there are at ' +
      'most 512 segments: NaN and infinities reach the other segments, too.',
    rows: sums,
  },
  {
    title: 'int32',
    text: 'Sums, differences and products are exact modulo 2³². Division by zero gives 0.',
    rows: integers,
  },
];
