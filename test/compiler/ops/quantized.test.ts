/** @file Weights of 8 and 4 bits: products and lookups that read the codes, on every engine, against plain sums in double precision. */
import { describe, expect, test } from 'vitest';
import { compile, ops, prngKey, type Tensor, tf, uniform } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';

type CodeBits = ops.CodeBits;

/** Numbers in [0, 1). */
function rng(seed: number): () => number {
  const numbers = uniform(prngKey(seed), 4096);
  let at = 0;
  return () => numbers[at++ % numbers.length]!;
}

/** Weights [C, D] in codes. */
interface Weights {
  readonly bits: CodeBits;
  readonly channels: number;
  readonly depth: number;
  readonly groups: number;
  readonly codes: Int8Array | Uint8Array;
  readonly scales: Float32Array;
  readonly values: Float64Array;
}

function drawn(bits: CodeBits, channels: number, depth: number, groups: number, seed: number): Weights {
  const next = rng(seed);
  const bytes = (depth * bits) / 8;
  const codes =
    bits === 8
      ? Int8Array.from({ length: channels * bytes }, () => Math.floor(next() * 256) - 128)
      : Uint8Array.from({ length: channels * bytes }, () => Math.floor(next() * 256));
  // bfloat16 numbers, so that memory of either kind has the same.
  const scales = Float32Array.from({ length: channels * groups }, (_, i) =>
    i % 7 === 3 ? 0 : 2 ** -8 * (1 + Math.floor(next() * 128) / 128),
  );
  const values = Float64Array.from({ length: channels * depth }, (_, at) => {
    const [c, d] = [Math.floor(at / depth), at % depth];
    const scale = scales[c * groups + Math.floor(d / (depth / groups))]!;
    if (bits === 8) return Math.fround(codes[at]! * scale);
    const byte = codes[c * bytes + Math.floor(d / 32) * 16 + (d % 16)]!;
    return Math.fround(((d % 32 < 16 ? byte & 15 : byte >> 4) - 8) * scale);
  });
  return { bits, channels, depth, groups, codes, scales, values };
}

/** Groups of so many elements, each whole numbers from -127 to 127 times a scale. */
function roundedRows(x: Float32Array, size: number): Float64Array {
  const result = new Float64Array(x.length);
  for (let first = 0; first < x.length; first += size) {
    const largest = x
      .subarray(first, first + size)
      .reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const [factor, scale] = [Math.fround(127 / largest), Math.fround(largest / 127)];
    // No drawn number is between two codes.
    for (let i = first; i < first + size; i++) result[i] = Math.round(Math.fround(x[i]! * factor)) * scale;
  }
  return result;
}

/** [rows, depth] times the transposed weights of `count` channels from `first` on. */
function productOf(
  x: ArrayLike<number>,
  rows: number,
  w: Weights,
  first = 0,
  count = w.channels,
): Float64Array {
  const { depth, values } = w;
  return Float64Array.from({ length: rows * count }, (_, at) => {
    const [r, c] = [Math.floor(at / count), first + (at % count)];
    let sum = 0;
    for (let d = 0; d < depth; d++) sum += x[r * depth + d]! * values[c * depth + d]!;
    return sum;
  });
}

function expectWithin(actual: ArrayLike<number>, expected: ArrayLike<number>, what: string): void {
  const largest = Math.max(...Array.from(expected, Math.abs));
  expect(actual.length, what).toBe(expected.length);
  const worst = Math.max(...Array.from(expected, (value, i) => Math.abs(actual[i]! - value)));
  expect(worst, what).toBeLessThanOrEqual(1e-6 * largest);
}

/** Taps down and across, strides, cells of a side, channels in and out. */
interface Image {
  readonly taps: [number, number];
  readonly stride: number;
  readonly size: number;
  readonly channels: number;
}

/** Windows of x [2, size, size, channels] without padding, as rows. */
function windowsOf(x: Float32Array, { taps: [down, across], stride, size, channels }: Image): Float32Array {
  const counts = [down, across].map((taps) => Math.floor((size - taps) / stride) + 1) as [number, number];
  const rows: number[] = [];
  for (let b = 0; b < 2; b++)
    for (let i = 0; i < counts[0]; i++)
      for (let j = 0; j < counts[1]; j++)
        for (let y = 0; y < down; y++)
          for (let z = 0; z < across * channels; z++)
            rows.push(x[((b * size + i * stride + y) * size + j * stride) * channels + z]!);
  return Float32Array.from(rows);
}

const IMAGES: readonly (readonly [CodeBits, number, number, Image])[] = [
  [8, 5, 1, { taps: [1, 1], stride: 1, size: 4, channels: 12 }],
  [8, 33, 1, { taps: [3, 3], stride: 1, size: 6, channels: 5 }],
  [4, 30, 3, { taps: [3, 1], stride: 2, size: 7, channels: 32 }],
  [4, 41, 1, { taps: [1, 2], stride: 1, size: 5, channels: 16 }],
];

const narrowOf = { 8: 'int8', 4: 'uint8' } as const;

const specsOf = ({ bits, channels, depth, groups }: Weights, isNarrow: boolean) => ({
  codes: {
    shape: [channels, (depth * bits) / 8],
    dtype: 'int32' as const,
    ...(isNarrow && { storage: narrowOf[bits] }),
  },
  scales: {
    shape: [channels, groups],
    dtype: 'float32' as const,
    ...(isNarrow && groups > 1 && { storage: 'bfloat16' as const }),
  },
});

const arraysOf = ({ codes, scales, groups }: Weights, isNarrow: boolean) => ({
  codes: isNarrow ? codes : Int32Array.from(codes),
  scales:
    isNarrow && groups > 1 ? Uint16Array.from(new Uint32Array(scales.buffer), (word) => word >>> 16) : scales,
});

/** bits, rows, channels, depth, groups; odd sizes, one of each, partial vectors and chunks. */
const SHAPES: readonly (readonly [CodeBits, number, number, number, number])[] = [
  [8, 1, 1, 1, 1],
  [8, 1, 5, 7, 1],
  [8, 3, 17, 33, 1],
  [8, 7, 9, 50, 1],
  [8, 2, 6, 96, 3],
  [4, 1, 3, 32, 1],
  [4, 5, 7, 160, 5],
  [4, 3, 5, 384, 6],
  [4, 4, 9, 256, 2],
  [8, 4, 7, 1601, 1],
  [4, 7, 7, 1600, 50],
];
const next = rng(Number(process.env.SEED ?? 50));
const upTo = (n: number): number => 1 + Math.floor(next() * n);
const DRAWN = Array.from({ length: 6 }, (_, i): (typeof SHAPES)[number] => {
  const groups = upTo(4);
  return i % 2 === 0
    ? [8, upTo(20), upTo(40), groups === 1 ? upTo(90) : groups * 32 * upTo(3), groups]
    : [4, upTo(20), upTo(40), groups * 32 * upTo(3), groups];
});

describe.each([...engines, ['eager', { engine: 'eager', available: true }] as const])(
  '%s',
  (_, { engine, available }) => {
    test.skipIf(!available)(
      'products have the sums of dequantised weights, to 1e-6 of the largest',
      async () => {
        const shapes = [...SHAPES, ...DRAWN];
        const weights = shapes.map(([bits, , channels, depth, groups], i) =>
          drawn(bits, channels, depth, groups, 100 + i),
        );
        const draw = rng(9);
        const inputs = shapes.map(([, rows, , depth]) =>
          Float32Array.from({ length: rows * depth }, () => 2 * draw() - 1),
        );
        // Every third one is held as int32 and float32.
        const isNarrow = (i: number): boolean => i % 3 !== 2;
        const specs = {
          x: shapes.map(([, rows, , depth]) => ({ shape: [rows, depth], dtype: 'float32' as const })),
          w: weights.map((each, i) => specsOf(each, isNarrow(i))),
        };
        const f = ({ x, w }: { x: Tensor[]; w: { codes: Tensor; scales: Tensor }[] }) =>
          w.map(({ codes, scales }, i) =>
            tf.matMul(x[i]!, ops.dequantize(codes, scales, weights[i]!.bits), false, true),
          );
        const executable = await compile(f, specs, { engine, numThreads: 2 });
        const outputs = shapes.map(([, rows, channels]) => new Float32Array(rows * channels));
        const call = executable.bind({
          inputs: { x: inputs, w: weights.map((each, i) => arraysOf(each, isNarrow(i))) },
          outputs,
        });
        await call.run();
        for (const [i, [, rows]] of shapes.entries())
          expectWithin(outputs[i]!, productOf(inputs[i]!, rows, weights[i]!), `[${shapes[i]!.join(', ')}]`);
        await executable.dispose();
      },
    );

    test.skipIf(!available)('views of the weights, parts of them and lookups', async () => {
      const w = drawn(4, 12, 64, 2, 5);
      const [draw, rows] = [rng(3), 2];
      const x = Float32Array.from({ length: rows * w.depth }, () => 2 * draw() - 1);
      const ids = Int32Array.from([3, 11, 3, 0]);
      const f = (given: { x: Tensor; ids: Tensor; codes: Tensor; scales: Tensor }) => {
        const all = ops.dequantize(given.codes, given.scales, 4);
        // [D, N, H] as projections of attention have them, and three of them in one variable.
        const heads = tf.transpose(tf.reshape(all, [4, 3, w.depth]), [2, 0, 1]);
        const parts = tf.split(all, 3, 0).map((part) => tf.matMul(given.x, part, false, true));
        return {
          heads: tf.matMul(given.x, tf.reshape(heads, [w.depth, 12])),
          parts,
          rows: ops.embeddingLookup(all, given.ids),
          ofTransposed: ops.embeddingLookup(tf.transpose(tf.transpose(all)), given.ids),
        };
      };
      const specs = {
        ...specsOf(w, true),
        x: { shape: [rows, w.depth], dtype: 'float32' as const },
        ids: { shape: [2, 2], dtype: 'int32' as const },
      };
      const operations = optimize(traceProgram(f, specs).graph).nodes.map(({ op }) => op);
      expect(operations.filter((op) => op === 'QuantizedMatMul')).toHaveLength(4);
      expect(operations).not.toContain('BatchMatMul');
      const executable = await compile(f, specs, { engine, numThreads: 1 });
      const floats = (n: number): Float32Array => new Float32Array(n);
      const outputs = {
        heads: floats(rows * 12),
        parts: [0, 1, 2].map(() => floats(rows * 4)),
        rows: floats(4 * w.depth),
        ofTransposed: floats(4 * w.depth),
      };
      await executable.bind({ inputs: { x, ids, ...arraysOf(w, true) }, outputs }).run();
      expectWithin(outputs.heads, productOf(x, rows, w), 'heads');
      outputs.parts.forEach((part, i) => {
        expectWithin(part, productOf(x, rows, w, 4 * i, 4), `part ${i}`);
      });
      const looked = [...ids].flatMap((id) => [...w.values.subarray(id * w.depth, (id + 1) * w.depth)]);
      expect([...outputs.rows]).toEqual(looked);
      expect([...outputs.ofTransposed]).toEqual(looked);
      await executable.dispose();
    });

    test.skipIf(!available)('convolutions are products of windows and codes', async () => {
      const weights = IMAGES.map(([bits, outputs, groups, { taps, channels }], i) =>
        drawn(bits, outputs, taps[0] * taps[1] * channels, groups, 30 + i),
      );
      const draw = rng(4);
      const x = IMAGES.map(([, , , { size, channels }]) =>
        Float32Array.from({ length: 2 * size * size * channels }, () => 2 * draw() - 1),
      );
      const f = (given: { x: Tensor[]; w: { codes: Tensor; scales: Tensor }[] }) =>
        IMAGES.map(([bits, outputs, , { taps, stride, channels }], i) => {
          const { codes, scales } = given.w[i]!;
          const apart = tf.reshape(ops.dequantize(codes, scales, bits), [outputs, ...taps, channels]);
          const filter = tf.transpose(apart, [1, 2, 3, 0]) as tf.Tensor4D;
          return tf.conv2d(given.x[i] as tf.Tensor4D, filter, stride, 'valid');
        });
      const specs = {
        x: IMAGES.map(([, , , { size, channels }]) => ({
          ...{ shape: [2, size, size, channels], dtype: 'float32' as const },
        })),
        w: weights.map((each) => specsOf(each, true)),
      };
      const operations = optimize(traceProgram(f, specs).graph).nodes.map(({ op }) => op);
      expect(operations.filter((op) => op === 'QuantizedMatMul')).toHaveLength(IMAGES.length);
      expect(operations).not.toContain('Dequantize');
      const expected = weights.map((each, i) => {
        const rows = windowsOf(x[i]!, IMAGES[i]![3]);
        return productOf(rows, rows.length / each.depth, each);
      });
      const executable = await compile(f, specs, { engine, numThreads: 2 });
      const outputs = expected.map(({ length }) => new Float32Array(length));
      await executable.bind({ inputs: { x, w: weights.map((each) => arraysOf(each, true)) }, outputs }).run();
      for (const [i, output] of outputs.entries())
        expectWithin(output, expected[i]!, JSON.stringify(IMAGES[i]));
      await executable.dispose();
    });

    test.skipIf(!available)('products of rounded rows have the sums of their codes', async () => {
      const shapes = [...SHAPES, ...DRAWN];
      const weights = shapes.map(([bits, , channels, depth, groups], i) =>
        drawn(bits, channels, depth, groups, 200 + i),
      );
      const draw = rng(12);
      // One element in seven is large, so that others lose most of their bits.
      const inputs = shapes.map(([, rows, , depth]) =>
        Float32Array.from({ length: rows * depth }, (_, i) => (i % 7 === 0 ? 20 : 1) * (2 * draw() - 1)),
      );
      const specs = {
        x: shapes.map(([, rows, , depth]) => ({ shape: [1, rows, depth], dtype: 'float32' as const })),
        w: weights.map((each, i) => specsOf(each, i % 3 !== 2)),
      };
      const f = ({ x, w }: { x: Tensor[]; w: { codes: Tensor; scales: Tensor }[] }) =>
        w.map(({ codes, scales }, i) => {
          const rows = ops.roundRows(x[i]!, 8, weights[i]!.groups);
          return tf.matMul(rows, ops.dequantize(codes, scales, weights[i]!.bits), false, true);
        });
      const operations = optimize(traceProgram(f, specs).graph).nodes;
      expect(operations.map(({ op }) => op)).not.toContain('RoundRows');
      const products = operations.filter(({ op }) => op === 'QuantizedMatMul');
      expect(products.map(({ attrs }) => attrs.rowBits)).toEqual(shapes.map(() => 8));
      const executable = await compile(f, specs, { engine, numThreads: 2 });
      const outputs = shapes.map(([, rows, channels]) => new Float32Array(rows * channels));
      await executable
        .bind({ inputs: { x: inputs, w: weights.map((each, i) => arraysOf(each, i % 3 !== 2)) }, outputs })
        .run();
      for (const [i, [, rows, , depth, groups]] of shapes.entries()) {
        const rounded = roundedRows(inputs[i]!, depth / groups);
        expectWithin(outputs[i]!, productOf(rounded, rows, weights[i]!), `[${shapes[i]!.join(', ')}]`);
      }
      await executable.dispose();
    });

    test.skipIf(!available || engine !== 'native')(
      'a row has the same bits in a batch of any size, rounded or not',
      async () => {
        const kinds = [
          drawn(8, 7, 75, 1, 1),
          drawn(8, 6, 96, 3, 4),
          drawn(4, 7, 160, 5, 2),
          drawn(8, 7, 1601, 1, 3),
          drawn(4, 7, 1600, 50, 6),
        ];
        const batches = [1, 2, 3, 4, 14];
        const draw = rng(8);
        const inputs = kinds.map(({ depth }) =>
          Float32Array.from({ length: 14 * depth }, () => 2 * draw() - 1),
        );
        const f = ({ x, w }: { x: Tensor[]; w: { codes: Tensor; scales: Tensor }[] }) =>
          w.map(({ codes, scales }, i) =>
            [false, true].map((isRounded) =>
              batches.map((rows) => {
                const part = tf.slice(x[i]!, [0, 0], [rows, -1]) as Tensor;
                const factors = isRounded ? ops.roundRows(part, 8, kinds[i]!.groups) : part;
                return tf.matMul(factors, ops.dequantize(codes, scales, kinds[i]!.bits), false, true);
              }),
            ),
          );
        const specs = {
          x: kinds.map(({ depth }) => ({ shape: [14, depth], dtype: 'float32' as const })),
          w: kinds.map((each) => specsOf(each, true)),
        };
        const executable = await compile(f, specs, { engine, numThreads: 2 });
        const outputs = kinds.map(({ channels }) =>
          [0, 1].map(() => batches.map((rows) => new Float32Array(rows * channels))),
        );
        await executable
          .bind({ inputs: { x: inputs, w: kinds.map((each) => arraysOf(each, true)) }, outputs })
          .run();
        for (const [i, { channels }] of kinds.entries())
          for (const parts of outputs[i]!)
            for (const part of parts)
              expect([...part.subarray(0, channels)]).toEqual([...parts[4]!.subarray(0, channels)]);
        await executable.dispose();
      },
    );
  },
);

test('windows that are more than the channels are not copied', () => {
  const of = (size: number) => {
    const f = ({ x, codes, scales }: Record<'x' | 'codes' | 'scales', Tensor>) => {
      const apart = tf.reshape(ops.dequantize(codes, scales, 8), [8, 3, 3, 16]);
      return tf.conv2d(x as tf.Tensor4D, tf.transpose(apart, [1, 2, 3, 0]) as tf.Tensor4D, 1, 'same');
    };
    const specs = {
      codes: { shape: [8, 144], dtype: 'int32' },
      scales: { shape: [8, 1], dtype: 'float32' },
      x: { shape: [1, size, size, 16], dtype: 'float32' },
    } as const;
    return optimize(traceProgram(f as never, specs).graph).nodes.map(({ op }) => op);
  };
  expect(of(2)).toContain('QuantizedMatMul');
  expect(of(3)).toContain('Conv2D');
});

test('rows in other groups than the weights are rounded by themselves', () => {
  const f = ({ x, codes, scales }: Record<'x' | 'codes' | 'scales', Tensor>) =>
    tf.matMul(ops.roundRows(x, 8, 1), ops.dequantize(codes, scales, 8), false, true);
  const specs = {
    x: { shape: [4, 64], dtype: 'float32' },
    codes: { shape: [8, 64], dtype: 'int32' },
    scales: { shape: [8, 2], dtype: 'float32' },
  } as const;
  const products = optimize(traceProgram(f as never, specs).graph).nodes.filter(
    ({ op }) => op === 'QuantizedMatMul',
  );
  expect(products.map(({ attrs }) => attrs)).toEqual([{ bits: 8, first: 0, channels: 8 }]);
});

test('rows that groups do not divide are an error', () => {
  expect(() => ops.roundRows(tf.zeros([2, 50]), 8, 4)).toThrow(
    'roundRows: expected rows [..., D] of 4 equal groups, got float32[2,50].',
  );
});

test('groups that are no whole blocks, or do not divide a channel, are an error', () => {
  const [codes, scales] = [tf.zeros([2, 48], 'int32'), tf.zeros([2, 3])];
  const message = (bits: CodeBits, c: Tensor, s: Tensor) => () => ops.dequantize(c, s, bits);
  expect(message(8, codes, scales)).toThrow(
    'dequantize: expected codes [C, D] and scales [C, G] of equal groups, of whole blocks of 32, got int32[2,48] and ' +
      'float32[2,3] for 8 bits.',
  );
  expect(message(4, codes, tf.zeros([2, 2]))).toThrow(
    'of whole blocks of 32, got int32[2,48] and float32[2,2]',
  );
  expect(message(8, codes, tf.zeros([3, 1]))).toThrow('got int32[2,48] and float32[3,1]');
  expect(message(4, codes, scales)).not.toThrow();
});
