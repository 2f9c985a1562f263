/** @file The safetensors format: round trips, alignment, and a precise error for every kind of damage. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CheckpointError, SafetensorsFile } from '../../src/checkpoints/index.js';
import { runs } from '../faults/campaign.js';
import { type NamedTensor, writeSafetensors } from './writeSafetensors.js';

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'luthier-safetensors-'));
  path = join(directory, 'x.safetensors');
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A file with this header text, whatever it says, and so many bytes of data. */
function writeRaw(header: string, dataBytes: number, length = BigInt(Buffer.byteLength(header))): void {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(length);
  writeFileSync(path, Buffer.concat([prefix, Buffer.from(header), Buffer.alloc(dataBytes)]));
}

function problem(): string {
  try {
    new SafetensorsFile(path).close();
  } catch (error) {
    expect(error).toBeInstanceOf(CheckpointError);
    expect((error as CheckpointError).kind).toBe('broken');
    expect((error as CheckpointError).message).toBe(`${path}: ${(error as CheckpointError).problem}`);
    return (error as CheckpointError).problem;
  }
  throw new Error('the file was accepted');
}

const ARRAYS = {
  F32: Float32Array,
  I32: Int32Array,
  I64: BigInt64Array,
  U8: Uint8Array,
  F64: Float64Array,
} as const;

const tensorArbitrary: fc.Arbitrary<NamedTensor> = fc
  .record({
    name: fc.string({ minLength: 1, unit: 'binary' }).filter((name) => name !== '__metadata__'),
    dtype: fc.constantFrom(...(Object.keys(ARRAYS) as (keyof typeof ARRAYS)[])),
    shape: fc.array(fc.nat(4), { maxLength: 3 }),
    seed: fc.uint8Array({ minLength: 8, maxLength: 8 }),
  })
  .map(({ name, dtype, shape, seed }) => {
    const count = shape.reduce((product, size) => product * size, 1);
    const data = new ARRAYS[dtype](count);
    const bytes = new Uint8Array(data.buffer);
    bytes.forEach((_, index) => {
      bytes[index] = seed[index % 8]! ^ index;
    });
    return { name, dtype, shape, data };
  });

const bytesOf = (view: ArrayBufferView) => Buffer.from(view.buffer, view.byteOffset, view.byteLength);

test('any tensors come back bit for bit, aligned, with their metadata', () => {
  const tensors = fc.uniqueArray(tensorArbitrary, { selector: ({ name }) => name, maxLength: 8 });
  const metadata = fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 });
  fc.assert(
    fc.property(tensors, metadata, (written, notes) => {
      rmSync(path, { force: true });
      const digest = writeSafetensors(path, written, notes);
      const file = new SafetensorsFile(path);
      try {
        expect(file.digest()).toEqual(digest);
        expect(file.layout.metadata).toEqual(notes);
        expect(file.layout.tensors.length).toBe(written.length);
        const dataStart = 8 + Number(readFileSync(path).readBigUInt64LE(0));
        expect(dataStart % 8).toBe(0);
        for (const { name, dtype, shape, data } of written) {
          expect(file.place(name)).toMatchObject({ name, dtype, shape });
          const { BYTES_PER_ELEMENT } = ARRAYS[dtype as keyof typeof ARRAYS];
          expect((dataStart + file.place(name)!.offset) % BYTES_PER_ELEMENT).toBe(0);
          expect(bytesOf(file.read(name)).equals(bytesOf(data))).toBe(true);
          const target = new Uint8Array(data.byteLength);
          file.readInto(name, target);
          expect(bytesOf(target).equals(bytesOf(data))).toBe(true);
        }
      } finally {
        file.close();
      }
    }),
    { numRuns: runs(60, 15) },
  );
});

test('a file of a hand-made header is read', () => {
  const header = '{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}   ';
  writeRaw(header, 0);
  writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from([0x80, 0x3f, 0x20, 0xc0])]));
  const file = new SafetensorsFile(path);
  expect(file.read('a')).toEqual(Uint16Array.of(0x3f80, 0xc020));
  const floats = new Float32Array(2);
  file.readFloats('a', floats);
  expect(floats).toEqual(Float32Array.of(1, -2.5));
  expect(() => file.read('b')).toThrow(`${path}: it has no tensor 'b'`);
  expect(() => file.readInto('a', new Uint8Array(8))).toThrow(
    `${path}: tensor 'a': expected 8 bytes, found 4`,
  );
  file.close();
});

test('each dtype of the format has its size', () => {
  const bits = {
    ...{ F64: 64, I64: 64, U64: 64, C64: 64, F32: 32, I32: 32, U32: 32 },
    ...{ F16: 16, BF16: 16, I16: 16, U16: 16, I8: 8, U8: 8, BOOL: 8 },
    ...{ F8_E5M2: 8, F8_E4M3: 8, F8_E8M0: 8, F8_E5M2FNUZ: 8, F8_E4M3FNUZ: 8, F6_E2M3: 6, F6_E3M2: 6, F4: 4 },
  };
  for (const [dtype, size] of Object.entries(bits)) {
    const entry = (bytes: number) => JSON.stringify({ x: { dtype, shape: [8], data_offsets: [0, bytes] } });
    writeRaw(entry(size), size);
    const file = new SafetensorsFile(path);
    expect(file.layout.tensors).toMatchObject([{ name: 'x', dtype, shape: [8] }]);
    file.close();
    writeRaw(entry(size + 1), size + 1);
    expect(problem()).toContain("tensor 'x'");
  }
});

test('dtypes that are not read are refused by name, and do not stand in the way of others', () => {
  const tensors = {
    a: { dtype: 'F8_E4M3', shape: [3], data_offsets: [0, 3] },
    b: { dtype: 'F4', shape: [2], data_offsets: [3, 4] },
    c: { dtype: 'BOOL', shape: [1], data_offsets: [4, 5] },
    d: { dtype: 'U8', shape: [1], data_offsets: [5, 6] },
  };
  writeRaw(JSON.stringify(tensors), 6);
  const file = new SafetensorsFile(path);
  expect(file.read('d')).toEqual(Uint8Array.of(0));
  for (const [name, { dtype, shape }] of Object.entries(tensors).slice(0, 3)) {
    expect(() => file.readFloats(name, new Float32Array(shape[0]!))).toThrow(
      `${path}: tensor '${name}': ${dtype} is not read; convert it to F32, F16, BF16 or F64`,
    );
  }
  file.close();
});

test('views into one larger buffer are written as they are', () => {
  const flat = Float32Array.from({ length: 10 }, (_, index) => index);
  writeSafetensors(path, [{ name: 'w', dtype: 'F32', shape: [3], data: flat.subarray(4, 7) }]);
  const file = new SafetensorsFile(path);
  expect(file.read('w')).toEqual(Float32Array.of(4, 5, 6));
  file.close();
});

test('a writer refuses what would not be a file, and leaves none', () => {
  const data = new Float32Array(2);
  const tensor = { name: 'w', dtype: 'F32', shape: [2], data } as const;
  expect(() => writeSafetensors(path, [tensor, tensor])).toThrow("two tensors are named 'w'");
  expect(() => writeSafetensors(path, [{ ...tensor, name: '__metadata__' }])).toThrow(
    "'__metadata__' is reserved",
  );
  expect(existsSync(path)).toBe(false);
  writeSafetensors(path, [tensor]);
  expect(() => writeSafetensors(path, [tensor])).toThrow(/EEXIST/);
});

test('a file cut anywhere is seen to be cut', () => {
  writeSafetensors(path, [
    { name: 'a', dtype: 'F32', shape: [2, 2], data: new Float32Array(4) },
    { name: 'b', dtype: 'I64', shape: [], data: new BigInt64Array(1) },
  ]);
  const whole = readFileSync(path);
  const headerEnd = 8 + Number(whole.readBigUInt64LE(0));
  for (let length = 0; length < whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    const expected =
      length < 8
        ? `truncated: expected at least 8 bytes, found ${length}`
        : length < headerEnd
          ? `truncated in the header: expected at least ${headerEnd} bytes, found ${length}`
          : `truncated in the tensors: expected ${whole.length} bytes, found ${length}`;
    expect(problem()).toBe(expected);
  }
  writeFileSync(path, Buffer.concat([whole, Buffer.alloc(3)]));
  expect(problem()).toBe(
    `bytes after the last tensor: expected ${whole.length} bytes, found ${whole.length + 3}`,
  );
});

test.each([
  ['[]', 0, 'the header is not a JSON object'],
  [' {}', 0, 'the header is not a JSON object'],
  ['{"__metadata__":{"a":1}}', 0, '__metadata__: expected an object of strings, found {"a":1}'],
  ['{"a":3}', 0, "tensor 'a': expected an object, found 3"],
  ['{"a\\n\u2028":"b\\nc"}', 0, 'tensor \'a\\n\\u2028\': expected an object, found "b\\nc"'],
  [
    `{"a":${'['.repeat(1e5)}${']'.repeat(1e5)}}`,
    0,
    "tensor 'a': expected an object, found a value that is nested too deeply",
  ],
  [
    `{"a":[${'1,'.repeat(999)}1]}`,
    0,
    `tensor 'a': expected an object, found [${'1,'.repeat(40).slice(0, 79)}…`,
  ],
  ['{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', 4, "tensor 'a': expected a shape, found [-1]"],
  ['{"a":{"dtype":"F32","shape":[1]}}', 4, "tensor 'a': expected data_offsets [begin, end], found nothing"],
  [
    '{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}',
    4,
    "tensor 'a': expected data_offsets [begin, end], found [4,0]",
  ],
  [
    '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}',
    4,
    "tensor 'a': expected 8 bytes for F32 [2], found 4",
  ],
  [
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}',
    6,
    "tensor 'b' overlaps the tensor before it: expected offset 4, found 2",
  ],
  [
    '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}}',
    9,
    "tensor 'b' leaves a gap after the tensor before it: expected offset 4, found 5",
  ],
])('a header of %s is refused', (header, dataBytes, expected) => {
  writeRaw(header, dataBytes);
  expect(problem()).toBe(expected);
});

test('a tensor past the end of the file, an unknown dtype and text that is not JSON are refused', () => {
  const header = '{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}';
  writeRaw(header, 4);
  expect(problem()).toBe(
    `truncated in the tensors: expected ${8 + header.length + 9} bytes, found ${12 + header.length}`,
  );
  writeRaw('{"a":{"dtype":"Q4","shape":[],"data_offsets":[0,1]}}', 1);
  expect(problem()).toMatch(/^tensor 'a': expected a dtype of F64, I64, .*, found "Q4"$/);
  writeRaw('{"a":', 0);
  expect(problem()).toMatch(/^the header is not JSON: /);
});

test('a header length that asks for all memory is refused before anything is allocated', () => {
  for (const length of [100_000_001n, 2n ** 64n - 1n]) {
    writeRaw('{}', 0, length);
    expect(problem()).toBe(`header length: expected at most 100000000 bytes, found ${length}`);
  }
});

test('a file that is not there is an io error that keeps the cause', () => {
  expect(() => new SafetensorsFile(path)).toThrow(
    expect.objectContaining({ kind: 'io', path, cause: expect.objectContaining({ code: 'ENOENT' }) }),
  );
});
