/** @file Cases of the elementwise operations: each dtype that they take, broadcasting, gradients. */
import { type HostTensor, tf } from '../../../src/compiler/index.js';
import { bools, floats, host, ints } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const SHAPES = [[], [1], [7], [3, 5], [2, 1, 4, 3]];

/** Pairs of shapes that broadcast, in both directions. */
const PAIRS: [number[], number[]][] = [
  [[5], [5]],
  [[2, 3], []],
  [[], [4]],
  [
    [2, 3],
    [1, 3],
  ],
  [[4, 1], [3]],
  [
    [2, 1, 3],
    [5, 1],
  ],
  [
    [1, 4, 1, 2],
    [3, 1, 5, 1],
  ],
];

const unary = (f: CaseFunction, low = -2, high = 2, rest: Partial<Case> = {}): Case[] =>
  over(
    f,
    SHAPES.map((shape) => [floats(shape, low, high)]),
    rest,
  );

const unaryInt = (f: CaseFunction): Case[] => over(f, [[ints([3, 5], -9, 9)]], constant);

type Make = (shape: number[], seed: number) => HostTensor;

const pairs = (f: CaseFunction, left: Make, right: Make, rest: Partial<Case> = {}): Case[] =>
  over(
    f,
    PAIRS.map(([a, b]) => [left(a, 1), right(b, 2)]),
    rest,
  );

const real: Make = (shape, seed) => floats(shape, -2, 2, seed);
const positive: Make = (shape, seed) => floats(shape, 0.5, 3, seed);
/** Far from 0, with both signs. */
const divisor: Make = (shape, seed) => {
  const x = floats(shape, -1, 1, seed);
  return { ...x, data: Float32Array.from(x.data, (v) => v + Math.sign(v)) };
};
const whole: Make = (shape, seed) => ints(shape, -9, 9, seed);
const wholeDivisor: Make = (shape, seed) => {
  const x = ints(shape, 1, 7, seed);
  return { ...x, data: Int32Array.from(x.data, (v, i) => (i % 2 ? v : -v)) };
};
/** Halves: they meet often, so that comparisons see equal operands too. */
const halves: Make = (shape, seed) =>
  host(
    shape,
    Float32Array.from(ints(shape, -3, 3, seed).data, (v) => v / 2),
  );

/** Never near a half: finite differences meet no kink. */
const between: Make = (shape, seed) => {
  const x = halves(shape, seed);
  return { ...x, data: Float32Array.from(x.data, (v) => v + 0.25) };
};

const binary = (f: CaseFunction, left = real, right = real): Case[] => [
  ...pairs(f, left, right),
  ...pairs(f, whole, whole, constant),
];

const comparison = (f: CaseFunction): Case[] => [
  ...pairs(f, halves, halves, constant),
  ...pairs(f, (shape, seed) => ints(shape, -2, 2, seed), whole, constant),
];

const logical = (f: CaseFunction): Case[] =>
  pairs(f, bools, (shape, seed) => bools(shape, seed + 5), constant);

/** Beside the operations under test, tf.elu's gradient is one of its own. */
export const elementwiseCases: CaseTable = {
  Add: binary(tf.add),
  Sub: binary(tf.sub),
  Multiply: binary(tf.mul),
  RealDiv: pairs(tf.div, real, divisor),
  FloorDiv: [
    ...pairs(tf.floorDiv, real, divisor, constant),
    ...pairs(tf.floorDiv, whole, wholeDivisor, constant),
    ...over(tf.div, [[whole([9], 1), wholeDivisor([9], 2)]], constant),
  ],
  Mod: [...pairs(tf.mod, real, divisor), ...pairs(tf.mod, whole, wholeDivisor, constant)],
  Pow: [
    ...pairs(tf.pow, positive, real),
    ...over((x) => tf.pow(x, tf.scalar(3)), [[real([2, 3], 1)]]),
    ...pairs(
      tf.pow,
      (shape, seed) => ints(shape, -3, 4, seed),
      (shape, seed) => ints(shape, 0, 4, seed),
      constant,
    ),
  ],
  Maximum: binary(tf.maximum, halves, between),
  Minimum: binary(tf.minimum, halves, between),
  SquaredDifference: binary(tf.squaredDifference),
  Greater: [
    ...comparison(tf.greater),
    // A condition that depends on a parameter.
    ...over((x) => tf.where(tf.greater(x, 0.3), tf.square(x), tf.neg(x)), [[between([3, 4], 1)]]),
  ],
  GreaterEqual: comparison(tf.greaterEqual),
  Less: comparison(tf.less),
  LessEqual: comparison(tf.lessEqual),
  Equal: [...comparison(tf.equal), ...logical(tf.equal)],
  NotEqual: [...comparison(tf.notEqual), ...logical(tf.notEqual)],
  LogicalAnd: logical(tf.logicalAnd),
  LogicalOr: logical(tf.logicalOr),
  LogicalNot: over(tf.logicalNot, [[bools([3, 4])], [bools([])]], constant),
  Neg: [...unary(tf.neg), ...unaryInt(tf.neg)],
  Abs: [...unary(tf.abs), ...unaryInt(tf.abs)],
  Sign: unary(tf.sign),
  Floor: [...unary(tf.floor, -9, 9), ...over(tf.floor, [[halves([40], 1)]])],
  Ceil: [...unary(tf.ceil, -9, 9), ...over(tf.ceil, [[halves([40], 1)]])],
  Round: [...unary(tf.round, -9, 9), ...over(tf.round, [[halves([40], 1)]])],
  Exp: [...unary(tf.exp), ...over(tf.exp, [[ints([3, 5], -9, 9)], [bools([4])]], constant)],
  Expm1: [
    ...unary(tf.expm1),
    ...unary(tf.expm1, -1e-4, 1e-4, { tolerance: { relative: 1e-6, absolute: 0 } }),
  ],
  Log: unary(tf.log, 0.1, 9),
  Log1p: [
    ...unary(tf.log1p, -0.9, 9),
    ...unary(tf.log1p, -1e-4, 1e-4, { tolerance: { relative: 1e-6, absolute: 0 } }),
  ],
  Sqrt: unary(tf.sqrt, 0.1, 9),
  Rsqrt: unary(tf.rsqrt, 0.1, 9),
  Square: [...unary(tf.square), ...unaryInt(tf.square)],
  Reciprocal: unary(tf.reciprocal, 0.2, 4),
  Sin: unary(tf.sin, -9, 9),
  Cos: unary(tf.cos, -9, 9),
  Tanh: unary(tf.tanh, -4, 4),
  Sigmoid: unary(tf.sigmoid, -9, 9),
  Softplus: unary(tf.softplus, -30, 30),
  Erf: unary(tf.erf, -3, 3),
  Relu: [...unary(tf.relu), ...unaryInt(tf.relu)],
  Relu6: unary(tf.relu6, -3, 9),
  Elu: unary(tf.elu, -4, 4),
  EluGrad: unary(tf.elu, -4, 4),
  LeakyRelu: [
    ...over(tf.leakyRelu, [[ints([3, 5], -9, 9)], [bools([4])]], constant),
    ...unary(tf.leakyRelu),
    ...unary((x) => tf.leakyRelu(x, 0.05)),
  ],
  Step: [...unary(tf.step), ...unary((x) => tf.step(x, 0.25))],
  IsNan: over(tf.isNaN, [[host([3], [1, Number.NaN, Number.POSITIVE_INFINITY])]], constant),
  IsInf: over(tf.isInf, [[host([4], [1, Number.NaN, Number.POSITIVE_INFINITY, -Infinity])]], constant),
  IsFinite: over(tf.isFinite, [[host([4], [1, Number.NaN, Number.POSITIVE_INFINITY, -Infinity])]], constant),
  Identity: [...unary(tf.clone), ...unaryInt(tf.clone), ...over(tf.clone, [[bools([3])]], constant)],
  ClipByValue: [...unary((x) => tf.clipByValue(x, -0.5, 1.25)), ...unaryInt((x) => tf.clipByValue(x, -3, 4))],
  Cast: [
    ...over((x) => tf.cast(x, 'int32'), [[floats([4, 9], -9, 9)], [bools([5])]], constant),
    ...over((x) => tf.cast(x, 'bool'), [[halves([20], 1)], [ints([9], -2, 2)]], constant),
    ...over((x) => tf.cast(x, 'float32'), [[ints([2, 5], -9, 9)], [bools([5])]], constant),
    ...over((x) => tf.mul(tf.cast(tf.cast(x, 'int32'), 'float32'), x), [[floats([6], -9, 9)]]),
  ],
  Select: [
    ...over(
      (a, b, c) => tf.where(c, a, b),
      [
        [real([2, 3], 1), real([2, 3], 2), bools([2, 3])],
        [real([3], 1), real([2, 1], 2), bools([2, 3])],
        [real([], 1), real([4], 2), bools([4])],
        [real([2, 3, 2], 1), real([2], 2), bools([3, 1])],
      ],
      { differentiable: 2 },
    ),
    ...over(
      (a, b, c) => tf.where(c, a, b),
      [
        [whole([5], 1), whole([5], 2), bools([5])],
        [whole([5], 1), real([5], 2), bools([5])],
        [real([5], 1), bools([5], 7), bools([5])],
        [bools([5], 7), whole([5], 2), bools([5])],
        [bools([5], 7), bools([2, 5], 8), bools([5])],
      ],
      constant,
    ),
  ],
  AddN: over(
    (...xs) => tf.addN(xs),
    [[real([2, 3], 1)], [real([2, 3], 1), real([2, 3], 2), real([2, 3], 3)], [real([], 1), real([], 2)]],
  ),
};
