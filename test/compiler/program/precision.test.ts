/** @file Products in bfloat16: the rounding, which nodes have it, and the same results on every engine. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import * as ort from 'onnxruntime-node';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import {
  type Engine,
  exportOnnx,
  type HostTensor,
  type Precision,
  type Tensor,
  valueAndGrad,
  withPrecision,
} from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { PRECISIONS, roundOperand } from '../../../src/compiler/program/precision.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { jit } from '../../../src/jit/index.js';
import { engines } from '../engines.js';
import { compiledResults, expectClose, floats, host, ints, ops, tf, withGradient } from '../support.js';

/** Rounds by arithmetic on doubles, which hold every step exactly: 8 bits of significand, ties to the even neighbour. */
function rounded(x: number): number {
  if (!Number.isFinite(x) || x === 0) return x;
  let exponent = Math.floor(Math.log2(Math.abs(x)));
  // The logarithm is itself rounded.
  if (2 ** exponent > Math.abs(x)) exponent--;
  if (2 ** (exponent + 1) <= Math.abs(x)) exponent++;
  const quantum = 2 ** (Math.max(exponent, -126) - 7);
  const steps = Math.abs(x) / quantum;
  const below = Math.floor(steps);
  const up = steps - below > 0.5 || (steps - below === 0.5 && below % 2 === 1);
  const result = (below + Number(up)) * quantum;
  return Math.sign(x) * (result >= 2 ** 128 ? Number.POSITIVE_INFINITY : result);
}

const fromBits = (words: readonly number[]): Float32Array => new Float32Array(Uint32Array.from(words).buffer);

/** Every sign and exponent, each with low halves around a tie, above an even and above an odd upper half. */
const allExponents = fromBits(
  Array.from({ length: 512 }, (_, exponent) =>
    [0, 1, 0x3f, 0x7e, 0x7f].flatMap((high) =>
      [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map((low) => ((exponent << 23) | (high << 16) | low) >>> 0),
    ),
  ).flat(),
);

const allEngines = [...engines, ['eager', { engine: 'eager', available: true }] as const];

const product = (a: Tensor, b: Tensor): Tensor => withPrecision('bfloat16', () => tf.matMul(a, b));

describe('rounding', () => {
  const expected = (values: Float32Array): Float32Array => Float32Array.from(values, rounded);

  test('every exponent, ties, subnormals, infinities and NaN', () => {
    const result = roundOperand(allExponents, 'bfloat16');
    expect(result).toEqual(expected(allExponents));
    const words = new Uint32Array(result.buffer);
    expect(words.every((word) => (word & 0xffff) === 0)).toBe(true);
    result.forEach((x, i) => {
      expect(Object.is(x, -0) || x < 0, `sign of element ${i}`).toBe(
        !Number.isNaN(x) && new Uint32Array(allExponents.buffer)[i]! >>> 31 === 1,
      );
    });
  });

  test('any bits', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffffffff }), { maxLength: 50 }), (words) => {
        expect(roundOperand(fromBits(words), 'bfloat16')).toEqual(expected(fromBits(words)));
      }),
      { seed: 6, numRuns: 500 },
    );
  });

  test('a view is rounded, and the values are left as they are', () => {
    const values = Float32Array.of(9, 1 + 2 ** -9, 3, 9);
    expect(roundOperand(values.subarray(1, 3), 'bfloat16')).toEqual(Float32Array.of(1, 3));
    expect(values[1]).toBe(1 + 2 ** -9);
  });

  describe.each(allEngines)('of the operands on engine %s', (_, { engine, available }) => {
    const one = host([1, 1], [1]);
    // Instructions for bfloat16 take subnormals for 0, also those that would be rounded up to 2 ** -126. Sums start
    // from 0, and 0 + -0 is 0.
    const comparable = (values: ArrayLike<number>): Float32Array =>
      Float32Array.from(values, (x) => (engine === 'native' && Math.abs(x) <= 2 ** -126 ? 0 : x + 0));

    test.skipIf(!available)(
      'finite ones and infinities: a product with 1 gives what it multiplies',
      async () => {
        const values = allExponents.filter((x) => !Number.isNaN(x));
        const sums = comparable(expected(values));
        const column = host([values.length, 1], values);
        const [left] = await compiledResults(([a, b]) => product(a, b), [column, one], { engine });
        expect(comparable(left!.data)).toEqual(sums);
        const [right] = await compiledResults(([a, b]) => product(b, tf.transpose(a)), [column, one], {
          engine,
        });
        expect(comparable(right!.data)).toEqual(sums);
      },
    );

    test.skipIf(!available)('NaN of low bits alone, and NaN that a carry would turn into -0', async () => {
      const nans = host([3, 1], fromBits([0x7f800001, 0x7fffffff, 0xffffffff]));
      const [kept] = await compiledResults(([a, b]) => product(a, b), [nans, one], { engine });
      expect([...kept!.data]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    });
  });
});

/** The operations of an optimized program that multiply, with their precision; `absent` has the attribute not at all. */
function productsOf(f: (inputs: any) => any, inputs: readonly HostTensor[]): string[] {
  return optimize(traceProgram(f, [...inputs]).graph).nodes.flatMap(({ op, attrs }) =>
    /MatMul|Attention/.test(op) ? [`${op} ${attrs.precision ?? 'absent'}`] : [],
  );
}

describe('the graph', () => {
  const [x, w] = [floats([3, 4]), floats([4, 5])];

  test('the innermost call decides, and it ends with an error too', () => {
    const f = ([a, b]: Tensor[]) => {
      const outer = () => [
        tf.matMul(a!, b!),
        withPrecision('float32', () => tf.matMul(a!, tf.neg(b!))),
        tf.matMul(a!, tf.square(b!)),
      ];
      const fails = () =>
        withPrecision('bfloat16', () => {
          throw new Error('stop');
        });
      expect(fails).toThrow('stop');
      return [...withPrecision('bfloat16', outer), tf.matMul(a!, tf.exp(b!))];
    };
    expect(productsOf(f as any, [x, w])).toEqual([
      'BatchMatMul bfloat16',
      'BatchMatMul absent',
      'BatchMatMul bfloat16',
      'BatchMatMul absent',
    ]);
  });

  test('equal products of another precision are another product', () => {
    const f = ([a, b]: Tensor[]) => [tf.matMul(a!, b!), product(a!, b!), product(a!, b!)];
    expect(productsOf(f as any, [x, w])).toEqual(['BatchMatMul absent', 'BatchMatMul bfloat16']);
  });

  test.each(allEngines)(
    'integers are multiplied as integers on engine %s',
    async (_, { engine, available }) => {
      if (!available) return;
      const [a, b] = [ints([2, 3], 500, 1000), ints([3, 2], 500, 1000)];
      expect(productsOf(([p, q]) => product(p, q), [a, b])).toEqual(['BatchMatMul absent']);
      const [exact] = await compiledResults(([p, q]) => product(p, q), [a, b], { engine });
      const [plain] = await compiledResults(([p, q]) => tf.matMul(p, q), [a, b], { engine });
      expect(exact).toEqual(plain);
    },
  );

  test('gradients multiply as their product did, wherever they are taken', () => {
    const f = (a: Tensor, b: Tensor) => tf.add(product(tf.matMul(a, b), tf.transpose(b)), a);
    const gradient = withGradient(f, 2);
    const expected = [
      'BatchMatMul absent',
      'BatchMatMul bfloat16',
      ...['BatchMatMul bfloat16', 'BatchMatMul bfloat16', 'BatchMatMul absent', 'BatchMatMul absent'],
    ];
    expect(productsOf(gradient as any, [x, w]).sort()).toEqual(expected.sort());
    const inside = (inputs: Tensor[]) => withPrecision('bfloat16', () => gradient(inputs));
    expect(productsOf(inside as any, [x, w]).sort()).toEqual(
      Array.from({ length: 6 }, () => 'BatchMatMul bfloat16'),
    );
    const taken = (inputs: Tensor[]) =>
      withPrecision('bfloat16', () =>
        withGradient((a, b) => withPrecision('float32', () => tf.matMul(a, b)), 2)(inputs),
      );
    expect(productsOf(taken as any, [x, w])).toEqual(Array.from({ length: 3 }, () => 'BatchMatMul absent'));
  });

  test('gradients of gradients', () => {
    const twice = ([a, b]: Tensor[]) =>
      valueAndGrad((p: Tensor) => {
        const inner = valueAndGrad((q: Tensor) => ({ value: tf.sum(tf.square(product(q, b!))), aux: [] }), p);
        return { value: tf.sum(tf.square(inner.grads)), aux: [] };
      }, a!).grads;
    const products = productsOf(twice as any, [x, w]);
    expect(products.length).toBeGreaterThan(2);
    expect(new Set(products)).toEqual(new Set(['BatchMatMul bfloat16']));
  });

  test('attention, its gradient and their decompositions', async () => {
    const qkv = [1, 2, 3].map((seed) => floats([2, 3, 2, 4], -1, 1, seed));
    const f = (q: Tensor, k: Tensor, v: Tensor) =>
      withPrecision('bfloat16', () => ops.attention(q, k, v, { causal: true }));
    expect(productsOf(withGradient(f, 3) as any, qkv)).toEqual([
      'Attention bfloat16',
      'AttentionGrad bfloat16',
    ]);
    const plain = withGradient((q, k, v) => ops.attention(q, k, v, { causal: true }), 3);
    expect(productsOf(plain as any, qkv)).toEqual(['Attention absent', 'AttentionGrad absent']);
    const inside = (inputs: Tensor[]) => withPrecision('bfloat16', () => plain(inputs));
    expect(productsOf(inside as any, qkv)).toEqual(['Attention bfloat16', 'AttentionGrad bfloat16']);
    const own = (q: Tensor, k: Tensor, v: Tensor) =>
      withPrecision('bfloat16', () => ops.attention(q, k, v, { logits: ops.attentionLogits }));
    expect(new Set(productsOf(withGradient(own, 3) as any, qkv))).toEqual(new Set(['BatchMatMul bfloat16']));
  });

  test('passes keep it: transposes and factors that a product takes in, and sums that start from it', () => {
    const f = ([a, b, c]: Tensor[]) => tf.add(tf.mul(product(a!, tf.transpose(b!)), 3), c!);
    const [node] = optimize(
      traceProgram(f as any, [floats([3, 4]), floats([5, 4]), floats([3, 5])]).graph,
    ).nodes;
    expect([node!.op, node!.attrs]).toEqual([
      'BatchMatMul',
      { transposeA: false, transposeB: true, alpha: 3, precision: 'bfloat16' },
    ]);
  });
});

/** f and its gradients with respect to all inputs. */
const results = (
  f: (...args: any[]) => Tensor,
  inputs: readonly HostTensor[],
  options: { precision: Precision; engine: Engine },
): Promise<HostTensor[]> => {
  const program = (xs: Tensor[]) =>
    withPrecision(options.precision, () => withGradient(f, inputs.length)(xs));
  return compiledResults(program as any, [...inputs], { engine: options.engine });
};

/** Values of few bits: no engine's last bit decides how an operand that was computed before is rounded. */
const coarse = (shape: number[], seed: number): HostTensor =>
  host(shape, floats(shape, -2, 2, seed).data.map((x) => Math.round(x * 2048) / 2048) as Float32Array);

describe.each(engines)('results on engine %s', (_, { engine, available }) => {
  test.skipIf(!available).each<[string, (...args: any[]) => Tensor, HostTensor[]]>([
    ['a product', (a, b) => tf.matMul(a, b), [coarse([5, 33], 1), coarse([33, 7], 2)]],
    ['transposes', (a, b) => tf.matMul(a, b, true, true), [coarse([33, 5], 1), coarse([7, 33], 2)]],
    ['a batch', (a, b) => tf.matMul(a, b), [coarse([2, 3, 9], 1), coarse([1, 9, 2], 2)]],
    [
      'a sum that a product starts from',
      (a, b, c) => tf.add(tf.matMul(a, b), c),
      [coarse([5, 33], 1), coarse([33, 7], 2), coarse([5, 7], 3)],
    ],
    ['a dot product', (a, b) => tf.dot(a, b), [coarse([9], 1), coarse([9, 4], 2)]],
  ])('%s', async (_, f, inputs) => {
    const [actual, expected, exact] = [
      await results(f, inputs, { precision: 'bfloat16', engine }),
      await results(f, inputs, { precision: 'bfloat16', engine: 'eager' }),
      await results(f, inputs, { precision: 'float32', engine }),
    ];
    actual.forEach((tensor, i) => {
      expectClose(tensor, expected[i]!, { absolute: 1e-5 }, `output or gradient ${i}`);
    });
    const differs = actual.some((tensor, i) =>
      tensor.data.some((x, k) => Math.abs(x - exact[i]!.data[k]!) > 1e-4),
    );
    expect(differs, 'the same as in float32').toBe(true);
  });

  test.skipIf(!available)('attention and its gradients, within steps of bfloat16 of float32', async () => {
    const inputs = [1, 2, 3].map((seed) => coarse([2, 7, 2, 16], seed));
    const f = (q: Tensor, k: Tensor, v: Tensor) => ops.attention(q, k, v, { causal: true });
    const [actual, expected, exact] = [
      await results(f, inputs, { precision: 'bfloat16', engine }),
      await results(f, inputs, { precision: 'bfloat16', engine: 'eager' }),
      await results(f, inputs, { precision: 'float32', engine }),
    ];
    actual.forEach((tensor, i) => {
      expectClose(tensor, expected[i]!, { absolute: 5e-2 }, `output or gradient ${i}`);
      expectClose(tensor, exact[i]!, { absolute: 0.1 }, `output or gradient ${i} in float32`);
      expect(tensor.data).not.toEqual(exact[i]!.data);
    });
  });
});

describe('the table of precisions', () => {
  const src = fileURLToPath(new URL('../../../src/', import.meta.url));

  /** Runs `f` with one record more in the table. */
  async function withRecord(f: (precision: Precision) => Promise<void>): Promise<void> {
    const table = PRECISIONS as Record<string, (typeof PRECISIONS)[Precision]>;
    table.tested = { operands: 'float16' };
    try {
      await f('tested' as Precision);
    } finally {
      delete table.tested;
    }
  }

  test('a record makes engines round as it says, and the native one decline without kernels', async () => {
    // float16 has 11 bits of significand, and nothing beyond 65504.
    const a = host([5, 1], [1 + 2 ** -10, 1 + 2 ** -12, 2 ** -24, 2 ** -26, 70000]);
    const one = host([1, 1], [1]);
    await withRecord(async (precision) => {
      const f = ([x, y]: Tensor[]) => withPrecision(precision, () => tf.matMul(x!, y!));
      for (const engine of ['onnx', 'eager'] as const) {
        const [result] = await compiledResults(f as any, [a, one], { engine });
        expect([...result!.data], engine).toEqual([1 + 2 ** -10, 1, 2 ** -24, 0, Number.POSITIVE_INFINITY]);
      }
      await expect(compiledResults(f as any, [a, one], { engine: 'native' })).rejects.toThrow(
        'program: The native engine has no rule for products in tested. Use --engine=onnx.',
      );
    });
  });

  test('nothing but the table tells precisions apart by name', () => {
    const named = /([pP]recision|fpropDtype)(Of)?(\([^)]*\))? [!=]== '|'float32' \| 'bfloat16'/;
    const found = globSync('**/*.ts', { cwd: src }).flatMap((file) =>
      readFileSync(`${src}${file}`, 'utf8')
        .split('\n')
        .filter((line) => named.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });
});

describe('elsewhere', () => {
  test('jit and exported models round too', async () => {
    const [a, b] = [host([1, 1], [1 + 2 ** -9]), host([1, 1], [3])];
    expect(await jit(product)(a, b)).toEqual(host([1, 1], [3]));
    const session = await ort.InferenceSession.create(exportOnnx(([x, y]) => product(x, y), [a, b]));
    const tensor = ({ data, shape }: HostTensor) => new ort.Tensor('float32', data as Float32Array, shape);
    const results = await session.run({ 0: tensor(a), 1: tensor(b) });
    expect([...(results.output!.data as Float32Array)]).toEqual([3]);
    await session.release();
  });

  test("operations called on tfjs's own backend, outside of a program", async () => {
    const values = tf.tidy(() => {
      const [a, b] = [tf.tensor2d([[1 + 2 ** -9]]), tf.tensor2d([[3]])];
      const grad = tf.grad((x: Tensor) => product(b, x) as any)(a);
      return [
        product(a, b),
        tf.matMul(a, b),
        tf.grad((x: Tensor) => product(x, tf.add(b, 2 ** -8)) as any)(a),
        grad,
      ];
    });
    expect(values.map((x) => x.dataSync()[0])).toEqual([3, 3 + 3 * 2 ** -9, 3, 3]);
    tf.dispose(values);
  });

  test('no memory is kept by eager products', async () => {
    const [a, b] = [floats([4, 4]), floats([4, 4], -2, 2, 5)];
    await compiledResults(([x, y]) => product(x, y), [a, b], { engine: 'eager' });
    const before = [tf.memory().numTensors, tf.engine().backend.numDataIds()];
    await compiledResults(([x, y]) => product(x, y), [a, b], { engine: 'eager' });
    expect([tf.memory().numTensors, tf.engine().backend.numDataIds()]).toEqual(before);
  });
});
