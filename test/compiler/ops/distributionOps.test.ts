/** @file Random numbers of distributions: the same bits on every engine, the formulas' values, and their statistics. */
import { describe, expect, test } from 'vitest';
import { compile, type Engine, type HostTensor, type Tensor } from '../../../src/compiler/index.js';
import { randomUniformHost } from '../../../src/compiler/ops/randomOps.js';
import { foldInHost, randomWords } from '../../../src/compiler/random/randomWords.js';
import { engines } from '../engines.js';
import { compiledResults, host, leavesOf, ops, repeatedly, tf } from '../support.js';

const KEYS = [
  [0, 0],
  [1, 2],
  [-1, 2 ** 31 - 1],
  [-(2 ** 31), 123456789],
];
const SHAPES = [[], [0], [1], [2], [3, 5], [1024], [1025], [2, 0, 3], [35_003]];

const keyOf = (words: readonly number[]): HostTensor => host([2], words, 'int32');

/** All that is drawn from a key. */
const everything = (key: Tensor): Tensor[] => [
  ...SHAPES.flatMap((shape) => [
    ops.randomNormal(key, shape),
    ops.truncatedNormal(key, shape),
    ops.gumbel(key, shape),
    ops.randomInt(key, shape, -3, 4),
    ops.randomInt(key, shape, -(2 ** 31), 2 ** 31),
    ops.bernoulli(key, 0.3, shape),
  ]),
  ops.randomInt(key, [50], 2 ** 31 - 1, 2 ** 31),
  ops.randomInt(key, [500], 0, 2 ** 31 - 1),
  ops.permutation(key, 0),
  ops.permutation(key, 1),
  ops.permutation(key, 17),
  ops.permutation(key, 3000),
  ops.categorical(key, tf.reshape(tf.range(0, 12), [3, 4])),
  ops.categorical(key, tf.zeros([5])),
  ops.categorical(key, tf.reshape(tf.range(0, 12), [3, 4]), [7, 3]),
  ...ops.splitKey(key, 3),
];

/** All that is drawn from each of the keys, by one program. */
async function drawnOn(engine: Engine): Promise<HostTensor[]> {
  const executable = await compile(everything, keyOf(KEYS[0]!), { engine, numThreads: 2 });
  const drawn: HostTensor[] = [];
  for (const key of KEYS) drawn.push(...leavesOf(await repeatedly(executable, keyOf(key))));
  await executable.dispose();
  return drawn;
}
let eagerly: Promise<HostTensor[]> | undefined;

/** Where two lists of arrays differ in a bit. */
const differences = (found: readonly HostTensor[], expected: readonly HostTensor[]): string[] =>
  expected.flatMap(({ data }, which) => {
    const other = found[which]!.data;
    const at = data.findIndex((x, i) => !Object.is(x, other[i]));
    return at < 0 ? [] : [`${which}: [${at}] ${other[at]} ${data[at]}`];
  });

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('the same bits as operation by operation', async () => {
    eagerly ??= drawnOn('eager');
    const [expected, found] = [await eagerly, await drawnOn(engine)];
    expect(found.map(({ shape, dtype }) => ({ shape, dtype }))).toEqual(
      expected.map(({ shape, dtype }) => ({ shape, dtype })),
    );
    expect(differences(found, expected)).toEqual([]);
  });
});

/** The values of an eager function. */
const values = (f: () => Tensor): ArrayLike<number> => tf.tidy(() => f().dataSync());
const eager = (key: readonly number[], f: (key: Tensor) => Tensor): ArrayLike<number> =>
  values(() => f(tf.tensor1d([...key], 'int32')));

/** erf by its series, where that is short, and by its continued fraction. */
function erf(x: number): number {
  if (Math.abs(x) > 3) {
    let fraction = 0;
    for (let k = 60; k > 0; k--) fraction = k / 2 / (Math.abs(x) + fraction);
    const tail = Math.exp(-x * x) / Math.sqrt(Math.PI) / (Math.abs(x) + fraction);
    return Math.sign(x) * (1 - tail);
  }
  let [term, sum] = [x, x];
  for (let n = 1; n < 60; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
const phi = (x: number): number => (1 + erf(x / Math.SQRT2)) / 2;

/** As far as rounding to float32 goes. */
const near = (x: number): number => 1e-7 * Math.max(1, Math.abs(x));

test('normal numbers are those of Box and Muller', () => {
  const count = 20_001;
  const words = randomWords([3, 4], count + 1);
  const found = eager([3, 4], (key) => ops.randomNormal(key, [count]));
  for (let i = 0; i < count; i++) {
    const radius = Math.sqrt(-2 * Math.log((words[i - (i % 2)]! + 0.5) / 2 ** 32));
    const angle = (2 * Math.PI * words[i - (i % 2) + 1]!) / 2 ** 32;
    const expected = radius * (i % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
    if (Math.abs(found[i]! - expected) > 6 * near(expected)) expect(found[i]).toBe(expected);
  }
});

test("truncated and Gumbel numbers are their words' quantiles", () => {
  const count = 20_000;
  const words = randomWords([3, 4], count);
  const truncated = eager([3, 4], (key) => ops.truncatedNormal(key, [count]));
  const gumbel = eager([3, 4], (key) => ops.gumbel(key, [count]));
  for (let i = 0; i < count; i++) {
    const size = ((words[i]! % 2 ** 31) + 0.5) / 2 ** 31;
    const within = erf(Math.SQRT2) * (words[i]! >= 2 ** 31 ? -size : size);
    if (Math.abs(erf(truncated[i]! / Math.SQRT2) - within) > 2e-7) expect(truncated[i]).toBe(within);
    const expected = -Math.log(-Math.log((words[i]! + 0.5) / 2 ** 32));
    if (Math.abs(gumbel[i]! - expected) > near(expected)) expect(gumbel[i]).toBe(expected);
  }
});

test('integers are 63 bits modulo the range', () => {
  const words = randomWords([3, 4], 2000);
  for (const [low, high] of [
    [-3, 4],
    [0, 3_000_000_019 - 2 ** 31],
    [-(2 ** 31), 2 ** 31],
    [-(2 ** 31), 2 ** 31 - 1],
  ] as const) {
    const found = eager([3, 4], (key) => ops.randomInt(key, [1000], low, high));
    const expected = Array.from({ length: 1000 }, (_, i) => {
      const bits = (BigInt(words[2 * i]! >>> 1) << 32n) + BigInt(words[2 * i + 1]!);
      return Number(bits % BigInt(high - low)) + low;
    });
    expect(Array.from(found)).toEqual(expected);
  }
});

/** Chi-square of counts against expected shares. */
const chiSquare = (counts: readonly number[], shares: readonly number[]): number => {
  const total = counts.reduce((sum, n) => sum + n);
  return counts.reduce((sum, n, i) => sum + (n - total * shares[i]!) ** 2 / (total * shares[i]!), 0);
};
/** How many numbers from 0 to 1 lie in each of `bins` equal bins. */
function binned(numbers: Iterable<number>, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const x of numbers) counts[Math.min(bins - 1, Math.floor(x * bins))]!++;
  return counts;
}
const equal = (bins: number): number[] => new Array<number>(bins).fill(1 / bins);

/** 99, 23 and 9 degrees of freedom stay below these with probability 0.9999. */
const [LIMIT_99, LIMIT_23, LIMIT_9] = [161, 56, 34];

const moments = (x: ArrayLike<number>): number[] =>
  [1, 2, 3, 4].map((power) => Array.from(x).reduce((sum, v) => sum + v ** power, 0) / x.length);

const count = 40_000;
/** Distribution, its cumulative function, and its moments. */
const distributions: readonly [string, (key: Tensor) => Tensor, (x: number) => number, readonly number[]][] =
  [
    ['normal', (key) => ops.randomNormal(key, [count]), phi, [0, 1, 0, 3]],
    [
      'truncated normal',
      (key) => ops.truncatedNormal(key, [count]),
      (x) => (phi(x) - phi(-2)) / (phi(2) - phi(-2)),
      [0, 0.77374, 0, 1.41616],
    ],
    [
      'Gumbel',
      (key) => ops.gumbel(key, [count]),
      (x) => Math.exp(-Math.exp(-x)),
      [0.577216, 1.978112, 5.444874, 23.561474],
    ],
  ];

describe.each(distributions)('%s', (_, draw, cumulative, expected) => {
  test.each(KEYS.slice(1, 3))('key [%i, %i]', (...key) => {
    const found = eager(key, draw);
    expect(chiSquare(binned(Array.from(found, cumulative), 100), equal(100))).toBeLessThan(LIMIT_99);
    moments(found).forEach((moment, power) => {
      const squares = moments(Array.from(found, (x) => x ** (power + 1)))[1]!;
      const deviation = Math.sqrt(squares / count);
      expect(Math.abs(moment - expected[power]!)).toBeLessThan(4.5 * deviation);
    });
  });
});

test.each(KEYS.slice(1, 3))(
  'key [%i, %i]: integers, truth values and classes have their shares',
  (...key) => {
    const integers = eager(key, (k) => ops.randomInt(k, [count], -5, 5));
    expect(
      chiSquare(
        binned(
          Array.from(integers, (x) => (x + 5) / 10),
          10,
        ),
        equal(10),
      ),
    ).toBeLessThan(LIMIT_9);
    const p = tf.tensor1d([0, 0.25, 0.5, 1]);
    const truths = eager(key, (k) => ops.bernoulli(k, p, [count / 4, 4]));
    const trues = [0, 1, 2, 3].map(
      (column) => Array.from(truths).filter((x, i) => i % 4 === column && x).length,
    );
    expect([trues[0], trues[3]]).toEqual([0, count / 4]);
    expect(Math.abs(trues[1]! / (count / 4) - 0.25)).toBeLessThan(0.019);
    expect(Math.abs(trues[2]! / (count / 4) - 0.5)).toBeLessThan(0.022);
    const logits = Array.from({ length: 10 }, (_, i) => Math.sin(i) * 2);
    const shares = Array.from(values(() => tf.softmax(tf.tensor1d(logits))));
    const classes = eager(key, (k) => ops.categorical(k, tf.tensor1d(logits), [count / 4]));
    expect(
      chiSquare(
        binned(
          Array.from(classes, (x) => (x + 0.5) / 10),
          10,
        ),
        shares,
      ),
    ).toBeLessThan(LIMIT_9);
  },
);

test('a permutation has each element once, and all orders of four come equally often', () => {
  const long = eager([5, 6], (key) => ops.permutation(key, 4000));
  expect(Array.from(long).sort((a, b) => a - b)).toEqual(Array.from({ length: 4000 }, (_, i) => i));
  const counts = new Map<string, number>();
  for (let i = 0; i < 4800; i++) {
    const order = eager(foldInHost([7, 8], i), (key) => ops.permutation(key, 4)).toString();
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(24);
  expect(chiSquare([...counts.values()], equal(24))).toBeLessThan(LIMIT_23);
});

test('split keys differ from each other and from folded ones, and their streams are uniform together', () => {
  const split = tf.tidy(() =>
    ops.splitKey(tf.tensor1d([7, 11], 'int32'), 100).map((key) => [...key.dataSync()]),
  );
  const folded = Array.from({ length: 100 }, (_, i) => foldInHost([7, 11], i));
  expect(new Set([...split, ...folded].map(String)).size).toBe(200);
  const firsts = split.flatMap((key) => [...randomUniformHost(key, 100)]);
  expect(chiSquare(binned(firsts, 100), equal(100))).toBeLessThan(LIMIT_99);
});

const key = { shape: [2], dtype: 'int32' } as const;
test('what does not fit is refused, in traces and outside of them alike', async () => {
  const wrong: readonly [(key: Tensor) => Tensor, string][] = [
    [
      (k) => ops.randomInt(k, [2], 3, 3),
      'randomInt: expected integers low < high from -2^31 to 2^31, got [3,3].',
    ],
    [
      (k) => ops.randomInt(k, [2], 0.5, 3),
      'randomInt: expected integers low < high from -2^31 to 2^31, got [0.5,3].',
    ],
    [
      (k) => ops.randomNormal(k, [-1]),
      'randomNormal: expected dimensions that are integers, 0 or more, got [-1].',
    ],
    [(k) => ops.gumbel(tf.cast(k, 'float32'), [2]), 'gumbel: expected a key int32[2], got float32[2].'],
    [
      (k) => ops.categorical(k, tf.zeros([3, 4]), [2]),
      "categorical: expected logits [...batch, classes] and a shape that ends in the batch's dimensions, got logits [3,4] and shape [2].",
    ],
    [(k) => ops.permutation(k, 1.5), 'permutation: expected n to be an integer from 0 to 2^31 - 1, got 1.5.'],
  ];
  for (const [f, message] of wrong) {
    await expect(
      compiledResults(f as any, { ...key, data: Int32Array.of(1, 2) }, { engine: 'onnx' }),
    ).rejects.toThrow(message);
    expect(() => eager([1, 2], f)).toThrow(message);
  }
});
