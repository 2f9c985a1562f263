/** @file What the WebAssembly loop computes, against tfjs's cpu backend. */
import { expect, test, vi } from 'vitest';
import { compile, type HostTensor, type Tensor, type Tree } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/tracedProgram.js';
import { BLOCK } from '../../../src/compiler/wasm/lowerToWasm.js';
import { compiledResults, expectClose, floats, host, leavesOf, runLoop, tf } from '../support.js';

type Program = (inputs: any) => Tree<Tensor>;

const bitsOf = ({ data }: HostTensor): string[] =>
  Array.from(data, (x) => (Number.isNaN(x) ? 'NaN' : Object.is(x, -0) ? '-0' : String(x)));

const SPECIAL = [
  ...[0, -0, 1, -1, 0.5, -2.5, 3, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  // The largest numbers, the smallest normal ones, and subnormal ones.
  ...[3.4e38, -3.4e38, 1.2e-38, -1.2e-38, 1e-45, -1e-40],
];
const PAIRS = SPECIAL.flatMap((a) => SPECIAL.map((b) => [a, b] as const));
const left = host(
  [PAIRS.length],
  PAIRS.map(([a]) => a),
);
const right = host(
  [PAIRS.length],
  PAIRS.map(([, b]) => b),
);

type Binary = (a: Tensor, b: Tensor) => Tensor;

/** Operations by their names in a program. Each result is one rounding of the exact one. */
const EXACT: Record<string, Binary> = {
  Add: tf.add,
  Sub: tf.sub,
  Multiply: tf.mul,
  RealDiv: tf.div,
  Maximum: tf.maximum,
  Minimum: tf.minimum,
  Sqrt: (a) => tf.sqrt(a),
  Neg: (a) => tf.neg(a),
  Abs: (a) => tf.abs(a),
  Square: (a) => tf.square(a),
  Reciprocal: (a) => tf.reciprocal(a),
  Greater: (a, b) => tf.where(tf.greater(a, b), a, tf.neg(b)),
  GreaterEqual: (a, b) => tf.where(tf.greaterEqual(a, b), a, tf.neg(b)),
  Less: (a, b) => tf.where(tf.less(a, b), a, tf.neg(b)),
  LessEqual: (a, b) => tf.where(tf.lessEqual(a, b), a, tf.neg(b)),
  Equal: (a, b) => tf.where(tf.equal(a, b), a, tf.neg(b)),
  NotEqual: (a, b) => tf.where(tf.notEqual(a, b), a, tf.neg(b)),
  LogicalAnd: (a, b) => tf.where(tf.logicalAnd(tf.greater(a, 0), tf.greater(b, 0)), a, b),
  LogicalOr: (a, b) => tf.where(tf.logicalOr(tf.greater(a, 0), tf.greater(b, 0)), a, b),
  LogicalNot: (a, b) => tf.where(tf.logicalNot(tf.greater(a, b)), a, b),
  Select: (a, b) => tf.where(tf.greater(a, 1), tf.fill([PAIRS.length], Number.NaN), b),
  Fill: (a, b) => tf.where(tf.greater(a, b), tf.fill([PAIRS.length], -0), b),
};

test.each(Object.entries(EXACT))('%s gives the bits of the oracle', async (op, f) => {
  const program: Program = ([a, b]) => f(a, b);
  const recorded = optimize(traceProgram(program, [left, right]).graph).nodes.map((node) => node.op);
  expect(recorded).toContain(op);
  const [actual] = await runLoop(program, [left, right]);
  const [expected] = await compiledResults(program, [left, right], { engine: 'eager' });
  expect(bitsOf(actual!)).toEqual(bitsOf(expected!));
});

/** Operations that round twice here, in float32, or whose sum tfjs starts at 0, where that of -0 alone is -0. */
const ROUNDED: Record<string, Binary> = {
  Rsqrt: (a) => tf.rsqrt(a),
  SquaredDifference: (a, b) => tf.squaredDifference(a, b),
  AddN: (a, b) => tf.addN([a, b, a]),
};

test.each(Object.entries(ROUNDED))('%s agrees with the oracle', async (op, f) => {
  const program: Program = ([a, b]) => f(a, b);
  expect(traceProgram(program, [left, right]).graph.nodes.map((node) => node.op)).toContain(op);
  const [actual] = await runLoop(program, [left, right]);
  const [expected] = await compiledResults(program, [left, right], { engine: 'eager' });
  expectClose(actual!, expected!, { relative: 2 ** -22, absolute: 0 });
});

/** Arrays, a scalar, constants, a value that is the same in all elements, and an input that is an output. */
const mixed: Program = ({ x, y, rate }) => {
  const twice = tf.mul(rate, 2);
  return {
    step: tf.sub(x, tf.div(tf.mul(y, twice), tf.add(tf.sqrt(tf.abs(x)), 1e-8))),
    same: y,
    rate: tf.maximum(tf.mul(x, 0), twice),
  };
};

const SIZES = [...Array.from({ length: 66 }, (_, i) => i + 2), BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5];

test.each([
  ['short arrays', SIZES.filter((size) => size < 100)],
  ['blocks', SIZES.filter((size) => size > 100)],
])('sizes around the bounds of %s', async (_, sizes) => {
  for (const size of sizes) {
    const inputs = {
      x: floats([size], -2, 2, 1),
      y: floats([size], -2, 2, 2),
      rate: floats([], 0.1, 1, 3),
    };
    const actual = await runLoop(mixed, inputs);
    const expected = await compiledResults(mixed, inputs, { engine: 'eager' });
    actual.forEach((tensor, i) => {
      expectClose(tensor, expected[i]!, {}, `output ${i} of ${size} elements`);
    });
  }
});

test('arrays of several axes, and scalars of any rank, beside each other', async () => {
  const f: Program = ([x, a, b, c]) => tf.add(tf.mul(x, a), tf.div(b, tf.sub(c, x)));
  const inputs = [floats([3, 5, 7]), host([], [3]), host([1], [-2]), host([1, 1], [9])];
  const [actual] = await runLoop(f, inputs);
  const [expected] = await compiledResults(f, inputs, { engine: 'eager' });
  expectClose(actual!, expected!);
});

test('programs of one element agree on all engines', async () => {
  for (const shapes of [
    [[], []],
    [[1], []],
    [[], [1]],
    [[1], [1]],
  ]) {
    const inputs = shapes.map((shape) => floats(shape as number[]));
    const f: Program = ([x, y]) => tf.sub(tf.mul(x, y), 0.5);
    const [actual] = await compiledResults(f, inputs);
    const [expected] = await compiledResults(f, inputs, { engine: 'eager' });
    expectClose(actual!, expected!);
  }
});

test('arrays without elements give arrays without elements', async () => {
  const [actual] = await compiledResults(([x]) => tf.add(x, 1), [host([0], [])]);
  expect(actual).toEqual({ shape: [0], dtype: 'float32', data: new Float32Array(0) });
});

test('a constant array as output is no loop, and comes out all the same', async () => {
  const [negative, constant] = await compiledResults(
    ([x]) => [tf.neg(x), tf.tensor1d([4, 5, 6])],
    [floats([3])],
  );
  expect([...negative!.data]).toEqual(Array.from(floats([3]).data, (x) => -x));
  expect([...constant!.data]).toEqual([4, 5, 6]);
});

test('an output may share an input’s memory, in views of one buffer, at every run', async () => {
  const size = BLOCK + 3;
  const buffer = new Float32Array(2 * size + 2);
  const x = buffer.subarray(1, size + 1);
  const m = buffer.subarray(size + 1, 2 * size + 1);
  x.set(floats([size], -2, 2, 1).data);
  m.set(floats([size], -2, 2, 2).data);
  const rate = Float32Array.of(0.5);
  const expectedX = x.slice();
  const expectedM = m.slice();

  const array = { shape: [size], dtype: 'float32' } as const;
  const executable = await compile(
    ({ x, m, rate }: any) => {
      const next = tf.add(tf.mul(m, 0.5), x);
      return { x: tf.sub(x, tf.mul(next, rate)), m: next };
    },
    { x: array, m: array, rate: { shape: [], dtype: 'float32' } },
  );
  const call = executable.bind({ inputs: { x, m, rate }, outputs: { x, m } });
  for (const nextRate of [0.5, 0.25, 0]) {
    rate[0] = nextRate;
    const results = leavesOf(await call.run());
    expect(results.map((tensor) => tensor.data)).toEqual([x, m]);
    // Every product with a power of two is exact, so there is no rounding but that of the sums.
    for (let i = 0; i < size; i++) {
      expectedM[i] = expectedM[i]! * 0.5 + expectedX[i]!;
      expectedX[i] = expectedX[i]! - expectedM[i]! * nextRate;
    }
    expect(x).toEqual(expectedX);
    expect(m).toEqual(expectedM);
  }
  expect([buffer[0], buffer.at(-1)]).toEqual([0, 0]);
  await executable.dispose();
});

test('calls that are bound to other memory do not disturb each other', async () => {
  const executable = await compile(
    ([x, s]: any) => tf.mul(x, s),
    [
      { shape: [5], dtype: 'float32' },
      { shape: [], dtype: 'float32' },
    ],
  );
  const calls = [1, 2, 3].map((k) =>
    executable.bind({ inputs: [new Float32Array(5).fill(k), Float32Array.of(10 ** k)] }),
  );
  const results = await Promise.all(calls.map((call) => call.run()));
  expect(results.map((result) => [...(result as HostTensor).data])).toEqual([
    [10, 10, 10, 10, 10],
    [200, 200, 200, 200, 200],
    [3000, 3000, 3000, 3000, 3000],
  ]);
  await executable.dispose();
});

test('the head passes arrays and booleans to the loops', async () => {
  const f: Program = ([x, y]) => {
    const small = tf.less(tf.sum(tf.square(x)), 100);
    const next = tf.add(tf.mul(tf.exp(x), 0.5), tf.mul(y, y));
    return { next: tf.where(small, next, x), other: tf.where(small, tf.neg(y), y), small };
  };
  for (const largest of [1, 100]) {
    const inputs = [floats([BLOCK + 5], 0, largest / 100, 1), floats([BLOCK + 5], -2, 2, 2)];
    const actual = await runLoop(f, inputs);
    const expected = await compiledResults(f, inputs, { engine: 'eager' });
    actual.forEach((tensor, i) => {
      expectClose(tensor, expected[i]!);
    });
  }
});

test('a limit on addresses is told, with what to do', async () => {
  const full = new RangeError('WebAssembly.instantiate(): Out of memory');
  vi.stubGlobal('WebAssembly', { instantiate: () => Promise.reject(full) });
  const run = runLoop((x: Tensor) => tf.add(x, 1), host([2], [1, 2]));
  await expect(run).rejects.toThrow(
    'There is no room for a memory of WebAssembly, which reserves 10 GB of addresses (WebAssembly.instantiate(): Out of ' +
      'memory). Raise the limit, ulimit -v, or use --engine=onnx.',
  );
  vi.unstubAllGlobals();
});
