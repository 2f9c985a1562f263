/** @file Elements of every dtype as float32: all halves, limits of integers and doubles, tensors longer than the buffer. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { orderAxes } from '../../src/checkpoints/axes.js';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { flatArrayType, narrow } from '../../src/compiler/index.js';
import { loadMapFile } from '../../src/files/index.js';
import { temporaryDirectory } from '../command.js';
import { type NamedTensor, writeSafetensors } from './writeSafetensors.js';

let path: string;
beforeEach(() => {
  path = join(temporaryDirectory(), 'x.safetensors');
});

function floats(dtype: NamedTensor['dtype'], data: NamedTensor['data'] & { length: number }): Float32Array {
  if (existsSync(path)) rmSync(path);
  writeSafetensors(path, [{ name: 'w', dtype, shape: [data.length], data }]);
  const file = new SafetensorsFile(path);
  try {
    const target = new Float32Array(data.length);
    file.readFloats('w', target);
    return target;
  } finally {
    file.close();
  }
}

test('every half is its value: subnormal ones, infinities, zeros of both signs; NaN keeps its payload', () => {
  const halves = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
  const read = floats('F16', halves);
  const bits = new Uint32Array(read.buffer);
  for (const half of halves) {
    const [sign, exponent, fraction] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
    if (exponent === 31 && fraction > 0) {
      expect([read[half], (bits[half]! >> 13) & 1023]).toEqual([Number.NaN, fraction]);
      continue;
    }
    const magnitude =
      exponent === 31
        ? Number.POSITIVE_INFINITY
        : exponent === 0
          ? fraction * 2 ** -24
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    if (!Object.is(read[half], sign * magnitude))
      expect([half, read[half]]).toEqual([half, sign * magnitude]);
  }
});

test('every bfloat16 is the upper half of a float32', () => {
  const halves = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
  const bits = new Uint32Array(floats('BF16', halves).buffer);
  expect(bits.every((each, i) => each === i * 2 ** 16)).toBe(true);
});

test('doubles are rounded to the nearest, and integers are exact; what has no float32 is an error with its place', () => {
  const doubles = [0.1, -0, 1e-50, 3.4e38, Number.NaN, Number.NEGATIVE_INFINITY];
  expect(floats('F64', Float64Array.from(doubles))).toEqual(Float32Array.from(doubles));
  expect(floats('I8', Int8Array.of(-128, 127))).toEqual(Float32Array.of(-128, 127));
  expect(floats('U16', Uint16Array.of(65_535))).toEqual(Float32Array.of(65_535));
  expect(floats('I32', Int32Array.of(-(2 ** 31), 2 ** 24))).toEqual(Float32Array.of(-(2 ** 31), 2 ** 24));
  expect(floats('U64', BigUint64Array.of(2n ** 63n))).toEqual(Float32Array.of(2 ** 63));
  const misfit = (index: number, dtype: string, value: unknown) =>
    `${path}: tensor 'w': element ${index} of ${dtype}: ${value} has no float32 of its value`;
  expect(() => floats('F64', Float64Array.of(1, 3.5e38))).toThrow(misfit(1, 'F64', 3.5e38));
  expect(() => floats('I32', Int32Array.of(0, 0, 2 ** 24 + 1))).toThrow(misfit(2, 'I32', 2 ** 24 + 1));
  expect(() => floats('I64', BigInt64Array.of(-(2n ** 53n) - 1n))).toThrow(
    misfit(0, 'I64', -(2n ** 53n) - 1n),
  );
});

test('tensors longer than the buffer are read whole, in any order of their axes', () => {
  const shape = [3, 1_500_000];
  const data = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) => i);
  writeSafetensors(path, [
    { name: 'odd', dtype: 'U8', shape: [1], data: Uint8Array.of(1) },
    { name: 'w', dtype: 'F32', shape, data },
  ]);
  const file = new SafetensorsFile(path);
  const target = new Float32Array(data.length);
  file.readFloats('w', target);
  // toEqual takes minutes.
  expect(Buffer.compare(Buffer.from(target.buffer), Buffer.from(data.buffer))).toBe(0);
  file.readFloats('w', target, orderAxes('r c -> c r', shape, [shape[1]!, shape[0]!]));
  expect(target.every((value, i) => value === (i % 3) * shape[1]! + Math.floor(i / 3))).toBe(true);
  file.close();
});

test.each([
  ['F32', 'float32', (count: number) => Float32Array.from({ length: count }, (_, i) => i - 7.3)],
  ['F32', 'bfloat16', (count: number) => Float32Array.from({ length: count }, (_, i) => i - 7.3)],
  ['BF16', 'bfloat16', (count: number) => Uint16Array.from({ length: count }, (_, i) => 0x3f80 + i)],
  ['BF16', 'float32', (count: number) => Uint16Array.from({ length: count }, (_, i) => 0x3f80 + i)],
  ['I64', 'float16', (count: number) => BigInt64Array.from({ length: count }, (_, i) => BigInt(i))],
] as const)(
  'elements of %s in another order are those of the file, mapped or read, as %s',
  async (dtype, as, data) => {
    const shape = [21, 70] as const;
    writeSafetensors(path, [{ name: 'w', dtype, shape, data: data(21 * 70) }]);
    const file = new SafetensorsFile(path);
    const stored = new Float32Array(21 * 70);
    file.readFloats('w', stored);
    const turned = stored.map((_, i) => stored[(i % 21) * 70 + Math.floor(i / 21)]!);
    const storage = as === 'float32' ? undefined : as;
    const expected = storage === undefined ? turned : narrow(turned, storage);
    const order = orderAxes('r c -> c r', shape, [70, 21]);
    for (const map of [undefined, await loadMapFile()]) {
      const elements = file.elements('w', order, map);
      const target = new (flatArrayType(as))(expected.length);
      // Twice: what was forgotten is read again.
      for (let time = 0; time < 2; time++) {
        target.fill(0);
        for (let from = 0; from < target.length; from += 100)
          elements.fill(target.subarray(from, from + 100), from, storage);
        expect(target).toEqual(expected);
        elements.release();
      }
    }
    file.close();
  },
);

test('an element that does not fit is named by its place in the file, in whatever order it is read', () => {
  const data = Int32Array.of(1, 2, 2 ** 24 + 1, 4, 5, 6);
  writeSafetensors(path, [{ name: 'w', dtype: 'I32', shape: [2, 3], data }]);
  const file = new SafetensorsFile(path);
  const target = new Float32Array(6);
  expect(() => file.readFloats('w', target, orderAxes('r c -> c r', [2, 3], [3, 2]))).toThrow(
    `${path}: tensor 'w': element 2 of I32: ${2 ** 24 + 1} has no float32 of its value`,
  );
  file.close();
});
