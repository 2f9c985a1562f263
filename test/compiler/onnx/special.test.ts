/** @file NaN, infinities, zeros of both signs and extreme values, through every elementwise operation. */
import { expect, test } from 'vitest';
import type { HostTensor, Tensor } from '../../../src/compiler/index.js';
import { compiledResults, host, ops, tf } from '../support.js';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const VALUES = [nan, inf, -inf, 0, -0, 1e-40, 1, -1, 2.5, -2.5, 0.5, 1e-4, -1e-4, 88, -104, 1e9, 3e38, -3e38];

/** Where the compiled result differs from tfjs's cpu backend on purpose: IEEE 754, or C's library, decides. */
const DIFFERENT: Record<string, (operands: number[]) => number | null> = {
  // tfjs gives 0.
  sign: ([x]) => (Number.isNaN(x) ? nan : null),
  // IEEE 754: 1 to any power is 1; -1 to an infinite one too. tfjs, after JavaScript, gives NaN.
  pow: ([x, y]) => (x === 1 || (x === -1 && Math.abs(y!) === inf) ? 1 : null),
  // The remainder has the divisor's sign, also of an infinite divisor or a tiny dividend.
  mod: ([x, y]) => {
    const remainder = x! % y!;
    return remainder !== 0 && remainder < 0 !== y! < 0 ? Math.fround(remainder + y!) : Math.fround(remainder);
  },
};

const unary: Record<string, (x: Tensor) => Tensor> = {
  neg: tf.neg,
  abs: tf.abs,
  sign: tf.sign,
  floor: tf.floor,
  ceil: tf.ceil,
  round: tf.round,
  exp: tf.exp,
  expm1: tf.expm1,
  log: tf.log,
  log1p: tf.log1p,
  sqrt: tf.sqrt,
  rsqrt: tf.rsqrt,
  square: tf.square,
  reciprocal: tf.reciprocal,
  sin: (x) => tf.sin(tf.clipByValue(x, -1e4, 1e4)),
  cos: (x) => tf.cos(tf.clipByValue(x, -1e4, 1e4)),
  tanh: tf.tanh,
  sigmoid: tf.sigmoid,
  softplus: tf.softplus,
  erf: tf.erf,
  relu: tf.relu,
  relu6: tf.relu6,
  elu: tf.elu,
  leakyRelu: (x) => tf.leakyRelu(x, 0.1),
  step: (x) => tf.step(x, 0.3),
  clip: (x) => tf.clipByValue(x, -2, 2),
  isNaN: tf.isNaN,
  isInf: tf.isInf,
  isFinite: tf.isFinite,
  bool: (x) => tf.cast(x, 'bool'),
  where: (x) => tf.where(tf.greater(x, 0), x, tf.neg(x)),
  gelu: (x) => ops.gelu(x),
};

const binary: Record<string, (a: Tensor, b: Tensor) => Tensor> = {
  add: tf.add,
  sub: tf.sub,
  mul: tf.mul,
  div: tf.div,
  mod: tf.mod,
  pow: tf.pow,
  maximum: tf.maximum,
  minimum: tf.minimum,
  squaredDifference: tf.squaredDifference,
  greater: tf.greater,
  greaterEqual: tf.greaterEqual,
  less: tf.less,
  lessEqual: tf.lessEqual,
  equal: tf.equal,
  notEqual: tf.notEqual,
};

/** Asserts agreement on every element; erf and elu are approximations of 1e-6 on one side or the other. */
function expectSame(name: string, operands: HostTensor[], actual: HostTensor, expected: HostTensor): void {
  const bad: string[] = [];
  for (let i = 0; i < expected.data.length; i++) {
    const values = operands.map(({ data }) => data[i]!);
    const want = DIFFERENT[name]?.(values) ?? expected.data[i]!;
    const got = actual.data[i]!;
    const close = Math.abs(got - want) <= 1e-5 * Math.abs(want) + (Math.abs(want) < 1 ? 2e-7 : 0);
    if (!(got === want || (Number.isNaN(got) && Number.isNaN(want)) || close))
      bad.push(`${name}(${values}) = ${got}, expected ${want}`);
  }
  expect(bad).toEqual([]);
}

test.each(Object.entries(unary))('%s', async (name, f) => {
  const x = host([VALUES.length], VALUES);
  const [actual] = await compiledResults(f, x);
  const [expected] = await compiledResults(f, x, { engine: 'eager' });
  expectSame(name, [x], actual!, expected!);
});

test.each(Object.entries(binary))('%s', async (name, f) => {
  const size = VALUES.length ** 2;
  const a = host(
    [size],
    Array.from({ length: size }, (_, i) => VALUES[Math.floor(i / VALUES.length)]!),
  );
  const b = host(
    [size],
    Array.from({ length: size }, (_, i) => VALUES[i % VALUES.length]!),
  );
  const program = ({ a, b }: Record<string, Tensor>) => f(a!, b!);
  const [actual] = await compiledResults(program, { a, b });
  const [expected] = await compiledResults(program, { a, b }, { engine: 'eager' });
  expectSame(name, [a, b], actual!, expected!);
});

test('a NaN goes through products, sums, extrema, softmax, norms, attention and the loss', async () => {
  const x = host([1, 2, 2, 3], [1, 2, 3, nan, 5, 6, 7, 8, 9, 1, 2, 3]);
  const programs: ((x: Tensor) => Tensor)[] = [
    (x) => tf.matMul(x, x, false, true),
    (x) => tf.sum(x),
    (x) => tf.max(x),
    (x) => tf.min(x, 3),
    (x) => tf.mean(x),
    (x) => tf.softmax(x),
    (x) => tf.logSoftmax(x),
    (x) => ops.layerNorm(x, null, null, { epsilon: 1e-6 }),
    (x) => ops.rmsNorm(x, null, { epsilon: 1e-6 }),
    (x) => ops.attention(x, x, x),
    (x) => ops.softmaxCrossEntropy(tf.reshape(x, [4, 3]), tf.tensor1d([0, 1, 2, 0], 'int32')),
    (x) => tf.cumsum(x, 3),
  ];
  const results = await compiledResults((x) => programs.map((f) => f(x)), x);
  results.forEach(({ data }, i) => {
    expect([...data].some(Number.isNaN), `program ${i}`).toBe(true);
  });
});

test('a NaN in the gradient of few embeddings spoils all rows: their sums are a matrix product', async () => {
  const f = ({ dy, ids }: any) => [4, 600].map((rows) => tf.unsortedSegmentSum(dy, ids, rows));
  const [few, many] = await compiledResults(f, {
    dy: host([2, 1], [nan, 1]),
    ids: host([2], [0, 1], 'int32'),
  });
  expect([...few!.data]).toEqual([nan, nan, nan, nan]);
  expect([...many!.data.subarray(0, 3)]).toEqual([nan, 1, 0]);
});
