/** @file Narrow storage at the border of programs: every bit pattern, ties, bounds, and the same bits on every engine. */
import { describe, expect, test } from 'vitest';
import {
  type BoundArray,
  byteSize,
  compile,
  type Engine,
  evalShape,
  type NarrowType,
  narrow,
  type Tensor,
  type TensorSpec,
  widen,
} from '../../../src/compiler/index.js';
import { engines } from '../engines.js';
import { ops, tf } from '../support.js';

const all: readonly (readonly [string, Engine])[] = [
  ['eager', 'eager'],
  ...engines.flatMap(([title, { engine, available }]) => (available ? [[title, engine] as const] : [])),
];

/** Bits of the exponent and the fraction. */
const FLOATS = { bfloat16: [8, 7], float16: [5, 10] } as const;
type FloatType = keyof typeof FLOATS;
const floatTypes = Object.keys(FLOATS) as FloatType[];

/** Value by arithmetic on doubles, which hold every step exactly. */
function numberOf(bits: number, type: FloatType): number {
  const [exponentBits, fractionBits] = FLOATS[type];
  const sign = bits >>> 15 ? -1 : 1;
  const fraction = bits % 2 ** fractionBits;
  const exponent = Math.floor(bits / 2 ** fractionBits) % 2 ** exponentBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 ** exponentBits - 1)
    return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / 2 ** fractionBits) * 2 ** (exponent - bias);
}

const patterns = Uint16Array.from({ length: 65536 }, (_, bits) => bits);
const valuesOf = (type: FloatType): number[] => Array.from(patterns, (bits) => numberOf(bits, type));

const isNan = (type: FloatType, bits: number): boolean => Number.isNaN(numberOf(bits, type));

/** Quiet NaN, as every conversion makes of one that signals. */
const quiet = (type: FloatType): Uint16Array =>
  patterns.map((bits) => (isNan(type, bits) ? bits | (1 << (FLOATS[type][1] - 1)) : bits));

/** Floats at, just below and just above the middle between each finite pattern and the next, and what they become. */
function tiesOf(type: FloatType): { floats: Float32Array; expected: Uint16Array } {
  const floats: number[] = [];
  const expected: number[] = [];
  const infinite = (2 ** FLOATS[type][0] - 1) * 2 ** FLOATS[type][1];
  for (let bits = 0; bits < infinite; bits++) {
    const low = numberOf(bits, type);
    const high = numberOf(bits + 1, type);
    // Infinity stands where the next number would.
    const gap = Number.isFinite(high) ? high - low : low - numberOf(bits - 1, type);
    const middle = low + gap / 2;
    // A quarter of the gap may be no float32 for the least bfloat16s.
    for (const [x, to] of [
      [low, bits],
      [low + gap / 4, bits],
      [middle, bits % 2 === 0 ? bits : bits + 1],
      [middle + gap / 4, bits + 1],
    ] as const) {
      floats.push(x, -x);
      expected.push(to, to | 0x8000);
    }
  }
  return { floats: Float32Array.from(floats), expected: Uint16Array.from(expected) };
}

const ties = { bfloat16: tiesOf('bfloat16'), float16: tiesOf('float16') };

/** Compares arrays of many elements: `toEqual` would take seconds. */
function expectSame(found: BoundArray, expected: BoundArray): void {
  expect([found.constructor, found.length]).toEqual([expected.constructor, expected.length]);
  const at = found.findIndex((x, i) => !Object.is(x, expected[i]));
  expect({ at, value: found[at] }).toEqual({ at: -1, value: undefined });
}

const bitsOf = (floats: Float32Array): Uint32Array =>
  new Uint32Array(floats.buffer, floats.byteOffset, floats.length);

/** Bits, with one for all NaN. */
const plain = (floats: Float32Array): Int32Array =>
  new Int32Array(bitsOf(floats).map((bits) => ((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits)).buffer);

const spec = (length: number, storage?: NarrowType, dtype: TensorSpec['dtype'] = 'float32'): TensorSpec =>
  storage === undefined ? { shape: [length], dtype } : { shape: [length], dtype, storage };

describe('on the host', () => {
  test.each(floatTypes)('%s: all 65,536 patterns have the value of their bits and come back', (type) => {
    const wide = widen(patterns, type) as Float32Array;
    expectSame(plain(wide), plain(Float32Array.from(valuesOf(type))));
    expectSame(narrow(wide, type), quiet(type));
  });

  test.each(floatTypes)(
    '%s: what lies between two patterns goes to the nearest, from the middle to the even one',
    (type) => {
      expectSame(narrow(ties[type].floats, type), ties[type].expected);
    },
  );

  test('integers beyond the storage become its least and greatest', () => {
    const values = Int32Array.of(-(2 ** 31), -129, -128, -1, 0, 127, 128, 255, 256, 2 ** 31 - 1);
    expect([...narrow(values, 'int8')]).toEqual([-128, -128, -128, -1, 0, 127, 127, 127, 127, 127]);
    expect([...narrow(values, 'uint8')]).toEqual([0, 0, 0, 0, 0, 127, 128, 255, 255, 255]);
    expect([...widen(Int8Array.of(-128, 127), 'int8')]).toEqual([-128, 127]);
  });
});

describe.each(all)('on %s', (_, engine) => {
  test('every pattern is read as its value, every float stored as the nearest', async () => {
    const executable = await compile(
      ({ b, h, fromB, fromH }: Record<string, Tensor>) => ({
        b: tf.mul(b!, 1),
        h: tf.mul(h!, 1),
        sameB: ops.stored(b!, 'bfloat16'),
        sameH: ops.stored(h!, 'float16'),
        toB: ops.stored(fromB!, 'bfloat16'),
        toH: ops.stored(tf.neg(tf.neg(fromH!)), 'float16'),
      }),
      {
        b: spec(65536, 'bfloat16'),
        h: spec(65536, 'float16'),
        fromB: spec(ties.bfloat16.floats.length),
        fromH: spec(ties.float16.floats.length),
      },
      { engine },
    );
    const call = executable.bind({
      inputs: { b: patterns, h: patterns, fromB: ties.bfloat16.floats, fromH: ties.float16.floats },
    });
    const outputs = (await call.run()) as Record<string, { data: Float32Array }>;
    expectSame(plain(outputs.b!.data), plain(Float32Array.from(valuesOf('bfloat16'))));
    expectSame(plain(outputs.h!.data), plain(Float32Array.from(valuesOf('float16'))));
    expectSame(outputs.sameB!.data, quiet('bfloat16'));
    expectSame(outputs.sameH!.data, quiet('float16'));
    expectSame(outputs.toB!.data, ties.bfloat16.expected);
    expectSame(outputs.toH!.data, ties.float16.expected);
    await executable.dispose();
  });

  test('int8 and uint8: read, computed with as int32, bounded when stored', async () => {
    const executable = await compile(
      ({ i, u }: Record<string, Tensor>) => ({
        i: ops.stored(tf.mul(i!, tf.scalar(2, 'int32')), 'int8'),
        u: ops.stored(tf.sub(u!, tf.scalar(20, 'int32')), 'uint8'),
        half: tf.div(tf.cast(i!, 'float32'), 2),
        row: tf.gather(tf.tensor2d([[1], [2], [3]]), tf.mod(u!, tf.scalar(3, 'int32'))),
      }),
      { i: spec(256, 'int8', 'int32'), u: spec(256, 'uint8', 'int32') },
      { engine },
    );
    const i = Int8Array.from({ length: 256 }, (_, k) => k - 128);
    const u = Uint8Array.from({ length: 256 }, (_, k) => k);
    const outputs = (await executable.bind({ inputs: { i, u } }).run()) as Record<
      string,
      { data: BoundArray }
    >;
    expect(outputs.i!.data).toEqual(i.map((x) => Math.max(-128, Math.min(127, 2 * x))));
    expect(outputs.u!.data).toEqual(u.map((x) => Math.max(0, x - 20)));
    expect(outputs.half!.data).toEqual(Float32Array.from(i, (x) => x / 2));
    expect(outputs.row!.data).toEqual(Float32Array.from(u, (x) => (x % 3) + 1));
    await executable.dispose();
  });

  test('operations of all kinds read narrow inputs: products, sums along each axis, gathers, slices, sorted parts', async () => {
    const f = ({ x, w }: Record<string, Tensor>) => {
      const y = tf.matMul(x!, w!);
      const { values } = tf.topk(x!, 2);
      const parts = [
        y,
        tf.matMul(w!, x!, true, true),
        tf.sum(x!, 0),
        tf.sum(x!, 1),
        tf.sum(x!),
        tf.cumsum(w!, 1),
        values,
      ];
      return {
        ...parts,
        gathered: tf.gather(w!, tf.tensor1d([2, 0], 'int32')),
        turned: tf.transpose(w!),
        part: tf.slice(x!, [1, 1], [2, 3]),
      };
    };
    for (const type of floatTypes) {
      const numbers = Float32Array.from({ length: 20 }, (_, k) => Math.sin(k) * 3);
      const [x, w] = [narrow(numbers, type), narrow(numbers.map((v) => v * v).subarray(0, 15), type)];
      const specs = (storage?: NarrowType) => ({
        x: { ...spec(20, storage), shape: [4, 5] },
        w: { ...spec(15, storage), shape: [5, 3] },
      });
      const [held, whole] = [
        await compile(f, specs(type), { engine }),
        await compile(f, specs(), { engine }),
      ];
      const results = await held.bind({ inputs: { x, w } }).run();
      expect(results).toEqual(
        await whole.bind({ inputs: { x: widen(x, type), w: widen(w, type) } as any }).run(),
      );
      await Promise.all([held.dispose(), whole.dispose()]);
    }
  });

  test('state is stored over itself: others read the values before they are rounded', async () => {
    const executable = await compile(
      ({ m, g }: Record<string, Tensor>) => {
        const next = tf.add(tf.mul(m!, 0.9), g!);
        return { m: ops.stored(next, 'bfloat16'), twice: tf.mul(next, 2) };
      },
      { m: spec(100, 'bfloat16'), g: spec(100) },
      { engine },
    );
    const m = narrow(
      Float32Array.from({ length: 100 }, (_, k) => k / 7),
      'bfloat16',
    );
    const g = Float32Array.from({ length: 100 }, (_, k) => Math.cos(k));
    const before = widen(m, 'bfloat16') as Float32Array;
    const next = before.map((x, k) => Math.fround(Math.fround(x * Math.fround(0.9)) + g[k]!));
    const outputs = (await executable
      .bind({ inputs: { m, g }, outputs: { m, twice: null } })
      .run()) as Record<string, { data: Float32Array }>;
    expect(m).toEqual(narrow(next, 'bfloat16'));
    expect(outputs.twice!.data).toEqual(next.map((x) => 2 * x));
    await executable.dispose();
  });
});

test('specs have the storage, and its bytes', () => {
  const given = { shape: [3], dtype: 'float32', storage: 'bfloat16' } as const;
  const shapes = evalShape((x) => ({ x: ops.stored(x, 'float16'), y: x }), given);
  expect(shapes).toEqual({
    x: { shape: [3], dtype: 'float32', storage: 'float16' },
    y: { shape: [3], dtype: 'float32' },
  });
  expect(byteSize(given)).toBe(6);
  expect(byteSize({ shape: [3], dtype: 'int32', storage: 'int8' })).toBe(3);
});

test('errors name the storage that fits', async () => {
  const x = { shape: [2], dtype: 'int32' } as const;
  await expect(compile(({ x }: any) => x, { x: { ...x, storage: 'float16' } })).rejects.toThrow(
    "The input 'x' is int32 and can't be stored as float16: int8 and uint8 hold int32, bfloat16 and float16 hold float32.",
  );
  expect(() => evalShape((x) => ops.stored(x, 'bfloat16'), x)).toThrow(
    "stored: int32[2] can't be stored as bfloat16; expected int8 (int32), uint8 (int32), bfloat16 (float32), float16 (float32). " +
      'tf.cast changes a dtype.',
  );
  const executable = await compile(
    (x) => tf.add(x, 1),
    { ...x, dtype: 'float32', storage: 'bfloat16' },
    { engine: 'onnx' },
  );
  expect(() => executable.bind({ inputs: new Float32Array(2) })).toThrow(
    "program: input '' is bfloat16[2] and needs a Uint16Array of 2 elements, got a Float32Array of 2.",
  );
  await executable.dispose();
});
