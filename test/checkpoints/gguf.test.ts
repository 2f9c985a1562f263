/** @file GGUF files: blocks and files of the gguf package bit by bit, and files that are damaged. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ggmlTypes, packBlocks, unpackBlocks } from '../../src/checkpoints/gguf/ggmlTypes.js';
import { CheckpointError, GgufFile, WeightFiles, writeGguf } from '../../src/checkpoints/index.js';
import { narrow } from '../../src/compiler/index.js';
import { temporaryDirectory } from '../command.js';

/** Written by scripts/record_gguf.py. */
const record = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/published/gguf.json'), 'utf8'),
) as {
  unpacked: Record<string, { blocks: string; floats: string }>;
  packed: { floats: string; blocks: Record<string, string> };
  file: string;
};

const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'base64'));
const floatsOf = (text: string): Float32Array => new Float32Array(bytesOf(text).buffer);
const typeOf = (name: string) => ggmlTypes.find((type) => type.name === name)!;
const small = bytesOf(record.file);

/** A file of these bytes. */
function written(bytes: Uint8Array): string {
  const path = join(temporaryDirectory(), 'model.gguf');
  writeFileSync(path, bytes);
  return path;
}

function unpackedAll(name: string, blocks: Uint8Array, count: number): Float32Array {
  const floats = new Float32Array(count);
  unpackBlocks(typeOf(name), floats, 0, (target, at) => target.set(blocks.subarray(at, at + target.length)));
  return floats;
}

test.each(Object.entries(record.unpacked))('blocks of %s unpack to the floats of gguf', (name, given) => {
  const [blocks, floats] = [bytesOf(given.blocks), floatsOf(given.floats)];
  expect(unpackedAll(name, blocks, floats.length)).toEqual(floats);
  const part = new Float32Array(40);
  unpackBlocks(typeOf(name), part, 45, (target, at) => target.set(blocks.subarray(at, at + target.length)));
  expect(part).toEqual(floats.subarray(45, 85));
});

test('floats are packed in the bytes of gguf', () => {
  const { floats, blocks } = record.packed;
  const values = floatsOf(floats);
  for (const name of ['Q8_0', 'Q4_0'])
    expect(packBlocks(typeOf(name), values)).toEqual(bytesOf(blocks[name]!));
  const { buffer } = narrow(values, 'bfloat16');
  expect(new Uint8Array(buffer)).toEqual(bytesOf(blocks.BF16!));
});

test('Q4_K keeps more of normal weights than Q4_0, and all of what its scales can tell', () => {
  const values = Float32Array.from({ length: 1024 }, (_, i) => Math.sin(i * i) + Math.cos(7 * i));
  const lost = (name: string): number => {
    const kept = unpackedAll(name, packBlocks(typeOf(name), values), values.length);
    return Math.hypot(...kept.map((value, i) => value - values[i]!)) / Math.hypot(...values);
  };
  expect(lost('Q4_K')).toBeLessThan(0.9 * lost('Q4_0'));
  // Codes 0 to 15 by 63/64 of a scale, less a minimum: exact.
  const steps = Float32Array.from({ length: 256 }, (_, i) => ((i % 16) * 63) / 64 - 63 / 8);
  expect(unpackedAll('Q4_K', packBlocks(typeOf('Q4_K'), steps), 256)).toEqual(steps);
});

test('a file of gguf is read, and written byte by byte', () => {
  const file = new GgufFile(written(small));
  expect(Object.fromEntries(file.metadata)).toEqual({
    'general.architecture': 'small',
    'small.count': 7,
    'small.epsilon': Math.fround(1e-5),
    'small.flag': true,
    'small.large': 2 ** 40,
    'small.texts': ['a', 'é', ''],
    'small.flags': [true, false],
    'small.numbers': Float64Array.of(1, 2, 3),
  });
  const values = (name: string): number[] => {
    const floats = new Float32Array(file.shapeOf(name)!.reduce((a, b) => a * b, 1));
    file.elements(name).fill(floats, 0);
    return [...floats];
  };
  expect([file.shapeOf('whole'), values('whole')]).toEqual([
    [2, 3],
    [0, 1, 2, 3, 4, 5],
  ]);
  expect([file.shapeOf('half'), values('half')]).toEqual([[4], [0, 1, 2, 3]]);
  expect([file.shapeOf('packed'), values('packed').length]).toEqual([[2, 32], 64]);
  file.close();
  const path = join(temporaryDirectory(), 'again.gguf');
  const range = (length: number): Float32Array => Float32Array.from({ length }, (_, i) => i);
  writeGguf(
    path,
    [
      ['general.architecture', 'string', 'small'],
      ['small.count', 'u32', 7],
      ['small.epsilon', 'f32', 1e-5],
      ['small.flag', 'bool', true],
      ['small.large', 'u64', 2 ** 40],
      ['small.texts', 'string', ['a', 'é', '']],
      ['small.flags', 'bool', [true, false]],
      ['small.numbers', 'i32', [1, 2, 3]],
    ],
    [
      { name: 'whole', shape: [2, 3], type: 'F32', values: () => range(6) },
      { name: 'half', shape: [4], type: 'F16', values: () => range(4) },
      { name: 'packed', shape: [2, 32], type: 'Q8_0', values: () => range(64) },
    ],
  );
  expect(Buffer.compare(readFileSync(path), small)).toBe(0);
});

/** The file with a number at a place. */
function changed(at: number, kind: 'u32' | 'u64', value: number | bigint): Uint8Array {
  const bytes = small.slice();
  const view = new DataView(bytes.buffer);
  if (kind === 'u32') view.setUint32(at, Number(value), true);
  else view.setBigUint64(at, BigInt(value), true);
  return bytes;
}

const placeOf = (text: string): number => Buffer.from(small).indexOf(text);

test('damaged files are refused with the byte', () => {
  const problemOf = (bytes: Uint8Array): string => {
    const path = written(bytes);
    try {
      WeightFiles.open(path).close();
    } catch (error) {
      expect(error).toBeInstanceOf(CheckpointError);
      return (error as Error).message.replace(`${path}: `, '');
    }
    return 'none';
  };
  const count = placeOf('small.count');
  const whole = placeOf('whole');
  const end = small.length;
  expect([
    problemOf(small.slice(0, 3)),
    problemOf(changed(0, 'u32', 1)),
    problemOf(changed(4, 'u32', 1)),
    problemOf(changed(4, 'u32', 3 << 24)),
    problemOf(changed(8, 'u64', 2n ** 63n)),
    problemOf(changed(16, 'u64', 10 ** 6)),
    problemOf(changed(count - 8, 'u64', 2 ** 40)),
    problemOf(changed(count + 11, 'u32', 13)),
    problemOf(changed(placeOf('small.texts') + 19, 'u64', 2 ** 31)),
    problemOf(changed(placeOf('small.texts') + 15, 'u32', 9)),
    problemOf(changed(whole + 5, 'u32', 5)),
    problemOf(changed(whole + 9, 'u64', 2 ** 40)),
    problemOf(changed(whole + 25, 'u32', 16)),
    problemOf(changed(whole + 29, 'u64', 8)),
    problemOf(changed(whole + 29, 'u64', 64)),
    problemOf(changed(placeOf('packed') + 10, 'u64', 31)),
    problemOf(small.slice(0, -64)),
  ]).toEqual([
    'at byte 0: truncated in the magic number',
    'at byte 0: it does not begin with GGUF',
    'at byte 4: version 1: expected 2 or 3',
    'at byte 4: version 50331648, perhaps big-endian: expected 2 or 3',
    'at byte 8: the number of tensors is 9223372036854776000, beyond 2^53',
    'at byte 16: the number of metadata entries is 1000000, more than the file holds',
    `at byte ${count - 8}: the length of a key is 1099511627776, more than the file holds`,
    `at byte ${count + 11}: 'small.count' is of kind 13: expected 0 to 12`,
    `at byte ${placeOf('small.texts') + 19}: the length of 'small.texts' is 2147483648, more than the file holds`,
    `at byte ${placeOf('small.texts') + 15}: 'small.texts' is an array of arrays, which is not read`,
    `at byte ${whole - 8}: tensor 'whole' has 5 axes: expected 4 at most`,
    `at byte ${whole - 8}: tensor 'whole' ends at byte ${end - 160 + 2 ** 43}, and the file has ${end}`,
    `at byte ${whole - 8}: tensor 'whole' is of type 16, which is not read: expected ${ggmlTypes.map(({ name }) => name).join(', ')}`,
    `at byte ${whole - 8}: tensor 'whole': expected an offset that is a multiple of 32, found 8`,
    `at byte ${placeOf('packed') - 8}: tensor 'packed' overlaps another`,
    `at byte ${placeOf('packed') - 8}: tensor 'packed' of Q8_0 has rows of 31: expected a multiple of 32`,
    `at byte ${placeOf('packed') - 8}: tensor 'packed' ends at byte ${end - 28}, and the file has ${end - 64}`,
  ]);
});

test('files with random damages are read, or refused by name', () => {
  const path = join(temporaryDirectory(), 'damaged.gguf');
  const damage = fc.record({
    length: fc.integer({ min: 0, max: small.length }),
    bytes: fc.array(fc.tuple(fc.nat(small.length - 1), fc.nat(255)), { maxLength: 4 }),
  });
  fc.assert(
    fc.property(damage, ({ length, bytes }) => {
      const file = small.slice();
      for (const [at, value] of bytes) file[at] = value;
      writeFileSync(path, file.subarray(0, Math.max(length, 1)));
      try {
        const read = new GgufFile(path);
        for (const name of read.names) {
          const shape = read.shapeOf(name)!;
          read.elements(name).fill(new Float32Array(shape.reduce((a, b) => a * b, 1)), 0);
        }
        read.close();
      } catch (error) {
        expect(error).toBeInstanceOf(CheckpointError);
        expect((error as Error).message.startsWith(`${path}: `)).toBe(true);
      }
    }),
    { numRuns: 100 },
  );
});
