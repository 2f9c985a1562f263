/**
 * @file Random programs whose numbers are exact: integers, truth values, and floats that are small multiples of 1/8, so that
 * engines agree to the bit, whatever is compared, rounded, ordered or counted on the way; beside them infinities and NaN.
 */
import fc from 'fast-check';
import { type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { broadcasts } from './programOperations.js';
import type { Step } from './programs.js';
import { host, ints } from './values.js';

/** The inputs of all programs. Each has zeros of both signs among its values, and equal ones. */
const eighths = (shape: number[], seed: number): HostTensor => {
  const { data } = ints(shape, -24, 25, seed);
  return host(
    shape,
    Float32Array.from(data, (x, i) => (i % 5 === 3 ? 0 * x : x / 8)),
  );
};

interface Inputs<T> {
  readonly floats: readonly T[];
  readonly whole: readonly T[];
  readonly truths: readonly T[];
  readonly wild: T;
}

export const exactInputs: Inputs<HostTensor> = {
  floats: [
    eighths([2, 3], 31),
    eighths([3], 32),
    eighths([], 33),
    eighths([2, 1, 3, 1, 2], 34),
    eighths([1, 2, 1, 2, 1, 3], 35),
    eighths([4, 1], 36),
  ],
  whole: [
    ints([2, 3], -5, 6, 37),
    ints([4], -5, 6, 38),
    ints([], -3, 4, 39),
    ints([2, 1, 3, 2, 1], -2, 3, 40),
  ],
  truths: [host([2, 3], [1, 0, 0, 1, 1, 0], 'bool'), host([3], [0, 1, 0], 'bool')],
  wild: host([2, 4], [Infinity, Number.NaN, 0, -0, -Infinity, 2, -1.5, 3e38]),
};

type DType = 'float32' | 'int32' | 'bool';

/** What a step may look at: operands of one dtype that broadcast, and numbers that choose. */
interface Place {
  readonly x: Tensor;
  readonly y: Tensor;
  readonly n: number;
  readonly axis: number;
}

const int = (value: number): Tensor => tf.scalar(value, 'int32');

/** Multiples of 1/8 from -8 to 8: sums and products of those are exact. */
const tame = (x: Tensor): Tensor =>
  x.dtype === 'float32'
    ? tf.clipByValue(tf.div(tf.floor(tf.mul(x, 8)), 8), -8, 8)
    : tf.maximum(tf.minimum(x, int(9)), int(-9));

/** 1 where y is 0. */
const nonzero = (y: Tensor): Tensor => tf.where(tf.equal(y, tf.zerosLike(y)), tf.onesLike(y), y);

/** 1, 2 or 4 by n, as x. */
const power = (x: Tensor, n: number): Tensor =>
  tf.mul(tf.onesLike(x), tf.scalar(2 ** (n % 3), x.dtype as 'int32'));

/** Of numbers. */
const numeric: Readonly<Record<string, (place: Place) => Tensor | Tensor[]>> = {
  add: ({ x, y }) => tame(tf.add(x, y)),
  sub: ({ x, y }) => tame(tf.sub(x, y)),
  mul: ({ x, y }) => tame(tf.mul(x, y)),
  divPower: ({ x, n }) => tame(tf.div(x, power(x, n))),
  floorDiv: ({ x, y }) => tame(tf.floorDiv(x, nonzero(y))),
  mod: ({ x, y }) => tame(tf.mod(x, nonzero(y))),
  maximum: ({ x, y }) => tf.maximum(x, y),
  minimum: ({ x, y }) => tf.minimum(x, y),
  squaredDifference: ({ x, y }) => tame(tf.squaredDifference(x, y)),
  neg: ({ x }) => tf.neg(x),
  abs: ({ x }) => tf.abs(x),
  sign: ({ x }) => tf.sign(x),
  relu: ({ x }) => tf.relu(x),
  square: ({ x }) => tame(tf.square(x)),
  clip: ({ x, n }) => tf.clipByValue(x, -1 - (n % 3), n % 4),
  sum: ({ x, axis, n }) => tame(tf.sum(x, x.rank ? axis : undefined, n % 2 === 0)),
  sumAll: ({ x }) => tame(tf.sum(x)),
  prod: ({ x, axis, n }) => tame(tf.prod(tf.sign(x), x.rank ? axis : undefined, n % 2 === 0)),
  max: ({ x, axis, n }) => (x.rank ? tf.max(x, n % 3 === 0 ? undefined : axis, n % 2 === 0) : x),
  min: ({ x, axis, n }) => (x.rank ? tf.min(x, n % 3 === 0 ? undefined : axis, n % 2 === 0) : x),
  cumsum: ({ x, axis, n }) => (x.rank ? tame(tf.cumsum(x, axis, n % 2 === 0, n % 3 === 0)) : x),
  cumprod: ({ x, axis, n }) => (x.rank ? tf.cumprod(tf.sign(x), axis, n % 2 === 0, n % 3 === 0) : x),
  topk: ({ x, n }) => {
    if (x.rank === 0) return x;
    const { values, indices } = tf.topk(x, 1 + (n % x.shape.at(-1)!));
    return [values, indices];
  },
  argMax: ({ x, axis }) => (x.rank ? tf.argMax(x, axis) : x),
  argMin: ({ x, axis }) => (x.rank ? tf.argMin(x, axis) : x),
  greater: ({ x, y }) => tf.greater(x, y),
  lessEqual: ({ x, y }) => tf.lessEqual(x, y),
  less: ({ x, y }) => tf.less(x, y),
  greaterEqual: ({ x, y }) => tf.greaterEqual(x, y),
  matMul: ({ x, n }) => (x.rank < 2 || x.rank > 4 ? x : tame(tf.matMul(x, x, n % 2 === 0, n % 2 === 1))),
};

/** Whether y broadcasts to the shape of x. */
const isWithin = (y: Tensor, x: Tensor): boolean =>
  y.rank <= x.rank && y.shape.every((dim, i) => dim === 1 || dim === x.shape[x.rank - y.rank + i]);

/** Of floats alone. */
const fractional: typeof numeric = {
  floor: ({ x }) => tf.floor(x),
  ceil: ({ x }) => tf.ceil(x),
  round: ({ x }) => tf.round(x),
  step: ({ x }) => tf.step(x),
  leakyRelu: ({ x }) => tame(tf.leakyRelu(x, 0.25)),
  relu6: ({ x }) => tf.relu6(x),
  prelu: ({ x, y }) => (x.rank > 0 && isWithin(y, x) ? tame(tf.prelu(x, y)) : x),
  mean: ({ x, n }) => tame(tf.mean(tf.tile(tf.reshape(x, [-1]), [4]), n % 2 ? 0 : undefined)),
  hole: ({ x, n }) => tf.where(tf.isNaN(tf.div(x, tf.sub(x, n / 8))), tf.onesLike(x), x),
};

/** Of truth values. */
const logical: typeof numeric = {
  and: ({ x, y }) => tf.logicalAnd(x, y),
  or: ({ x, y }) => tf.logicalOr(x, y),
  xor: ({ x, y }) => tf.logicalXor(x, y),
  not: ({ x }) => tf.logicalNot(x),
  any: ({ x, axis, n }) => tf.any(x, x.rank ? axis : undefined, n % 2 === 0),
  all: ({ x, axis, n }) => tf.all(x, x.rank ? axis : undefined, n % 2 === 0),
};

/** Of all. */
const moving: typeof numeric = {
  same: ({ x }) => x,
  equal: ({ x, y }) => tf.equal(x, y),
  notEqual: ({ x, y }) => tf.notEqual(x, y),
  toInt: ({ x }) => tf.cast(x, 'int32'),
  toBool: ({ x }) => tf.cast(x, 'bool'),
  toFloat: ({ x }) => tf.cast(x, 'float32'),
  where: ({ x, y, n }) => tf.where(n % 2 ? tf.cast(x, 'bool') : tf.equal(x, y), x, y),
  flatten: ({ x }) => tf.reshape(x, [-1]),
  expandDims: ({ x, axis }) => (x.rank < 6 ? tf.expandDims(x, axis) : x),
  squeeze: ({ x }) => tf.squeeze(x),
  rotate: ({ x, n }) =>
    tf.transpose(
      x,
      x.shape.map((_, i) => (i + n) % x.rank),
    ),
  reverse: ({ x, axis }) => (x.rank ? tf.reverse(x, axis) : x),
  tile: ({ x, n }) =>
    x.rank
      ? tf.tile(
          x,
          x.shape.map((_, i) => ((n + i) % 3 === 0 ? 2 : 1)),
        )
      : x,
  slice: ({ x, n, axis }) => {
    if (x.rank === 0) return x;
    const size = x.shape.map((dim, i) => (i === axis ? Math.max(1, dim - (n % 2)) : dim));
    return tf.slice(
      x,
      x.shape.map((dim, i) => dim - size[i]!),
      size,
    );
  },
  strides: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const back = n % 2 === 0;
    const pick = (own: number, other: number): number[] => x.shape.map((_, i) => (i === axis ? own : other));
    const begin = x.shape.map((dim, i) => (i === axis && back ? dim - 1 : 0));
    const end = x.shape.map((dim, i) => (i === axis && back ? -dim - 1 : dim));
    return tf.stridedSlice(x, begin, end, pick(back ? -1 - (n % 3) : 1 + (n % 3), 1));
  },
  pad: ({ x, n }) =>
    x.rank && x.dtype !== 'bool'
      ? tf.pad(
          x,
          x.shape.map((_, i): [number, number] => [(n + i) % 2, 0]),
          n % 3,
        )
      : x,
  concat: ({ x, axis }) => (x.rank ? tf.concat([x, tf.reverse(x, axis)], axis) : x),
  stack: ({ x, axis }) => (x.rank < 6 ? tf.stack([x, x], axis) : x),
  unstack: ({ x, axis }) => (x.rank ? tf.unstack(x, axis) : x),
  gather: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const limit = int(x.shape[axis]! - 1);
    return tf.gather(x, tf.minimum(tf.tensor1d([n % 3, 0, 1], 'int32'), limit) as any, axis);
  },
  none: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const nothing = tf.slice(
      x,
      x.shape.map(() => 0),
      x.shape.map((dim, i) => (i === axis ? 0 : dim)),
    );
    if (x.dtype === 'bool') return n % 2 ? tf.any(nothing, axis) : tf.all(nothing, axis);
    return n % 2 ? tf.sum(nothing, axis) : tf.prod(nothing, axis);
  },
  count: ({ x, n }) =>
    x.dtype === 'int32'
      ? tf.bincount(tf.reshape(tf.abs(x), [-1]) as any, tf.tensor1d([]), 2 + (n % 5))
      : tf.cast(x, 'int32'),
};

/** Of infinities and NaN: what engines agree on. Their results are results of the program. */
const wild: Readonly<Record<string, (x: Tensor, y: Tensor) => Tensor>> = {
  wildAdd: (x, y) => tf.add(x, y),
  wildSub: (x, y) => tf.sub(x, y),
  wildMul: (x, y) => tf.mul(x, y),
  wildDiv: (x, y) => tf.div(x, y),
  wildNeg: (x) => tf.neg(x),
  wildAbs: (x) => tf.abs(x),
  wildMaximum: (x, y) => tf.maximum(x, y),
  wildMinimum: (x, y) => tf.minimum(x, y),
  wildSqrt: (x) => tf.sqrt(x),
  wildFloor: (x) => tf.floor(x),
  wildRelu: (x) => tf.relu(x),
  wildWhere: (x, y) => tf.where(tf.less(x, y), x, y),
  wildIsNaN: (x) => tf.cast(tf.isNaN(x), 'float32'),
  wildIsFinite: (x) => tf.where(tf.isFinite(x), x, tf.onesLike(x)),
  wildEqual: (x, y) => tf.cast(tf.equal(x, y), 'float32'),
  wildGreater: (x, y) => tf.cast(tf.logicalNot(tf.greaterEqual(x, y)), 'float32'),
  wildSum: (x) => tf.sum(tf.abs(x), -1, true),
  wildTranspose: (x) => tf.reshape(tf.transpose(x), x.shape),
  wildReverse: (x) => tf.reverse(x),
  wildGather: (x) => tf.gather(x, tf.tensor1d(x.shape[0]! > 1 ? [1, 0] : [0, 0], 'int32')),
};

const fits = (x: Tensor): boolean => x.rank <= 6 && x.size > 0 && x.size <= 160;

const all = { ...numeric, ...fractional, ...logical, ...moving };

export const exactSteps = fc.array(
  fc.record({
    op: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...Object.keys(all)) },
      { weight: 1, arbitrary: fc.constantFrom(...Object.keys(wild)) },
    ),
    a: fc.nat(1000),
    b: fc.nat(1000),
    n: fc.nat(11),
  }),
  { minLength: 3, maxLength: 24, size: 'max' },
);

const wanted = (op: string): readonly DType[] => {
  if (op in numeric) return ['float32', 'int32'];
  if (op in fractional) return ['float32'];
  return op in logical ? ['bool'] : ['float32', 'int32', 'bool'];
};

function runSteps(steps: readonly Step[], inputs: Inputs<Tensor>): Tensor[] {
  const pool = [...inputs.floats, ...inputs.whole, ...inputs.truths];
  const untamed: Tensor[] = [inputs.wild];
  const latest = (some: readonly Tensor[], a: number): Tensor =>
    some[some.length - 1 - (a % Math.min(some.length, 8))]!;
  const results: Tensor[] = [];
  for (const { op, a, b, n } of steps) {
    if (op in wild) {
      const made = wild[op]!(latest(untamed, a), latest(untamed, b));
      untamed.push(made);
      results.push(made);
      continue;
    }
    const dtypes = wanted(op);
    const x = latest(
      pool.filter(({ dtype }) => dtypes.includes(dtype as DType)),
      a,
    );
    const partners = pool.filter(({ dtype, shape }) => dtype === x.dtype && broadcasts(shape, x.shape));
    const y = partners[b % partners.length]!;
    const made = [all[op]!({ x, y, n, axis: x.rank ? b % x.rank : 0 })].flat().filter(fits);
    pool.push(...made);
    results.push(...made);
  }
  return results.slice(-12);
}

/** The last results of the steps, and the gradients of a sum of the floats among them, each with a weight of its own. */
export const exactProgram =
  (steps: readonly Step[]) =>
  (inputs: Inputs<Tensor>): Tensor[] => {
    const { aux, grads } = valueAndGrad(
      (leaves: Tensor[]) => {
        const results = runSteps(steps, { ...inputs, floats: leaves });
        const isTame = (x: Tensor): boolean => x.dtype === 'float32';
        const terms = [...results.filter(isTame), ...leaves].map((x, i) =>
          tf.sum(tf.mul(x, tf.scalar(1 + (i % 3)))),
        );
        return { value: tf.addN(terms as tf.Scalar[]), aux: results };
      },
      [...inputs.floats],
    );
    return [...aux, ...grads];
  };
