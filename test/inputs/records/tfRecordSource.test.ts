/** @file TFRecord files: any records, features of examples, and files that are damaged or cut off. */
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { maskedCrc32c, ProtobufMessage } from '../../../src/files/index.js';
import { build } from '../../../src/hparams/index.js';
import { TfRecordSource } from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';
import { runs } from '../../faults/campaign.js';

const directory = temporaryDirectory();
const path = join(directory, 'a.tfrecord');

function frame(data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(16 + data.length);
  bytes.writeBigUInt64LE(BigInt(data.length), 0);
  bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(0, 8)), 8);
  bytes.set(data, 12);
  bytes.writeUInt32LE(maskedCrc32c(data), 12 + data.length);
  return bytes;
}

const write = (...records: Uint8Array[]) => writeFileSync(path, Buffer.concat(records.map(frame)));
type Features = Record<
  string,
  { dtype: 'string' | 'bytes' | 'float32' | 'int64'; shape?: number[] | null; default?: number | string }
> | null;
const open = (features: Features = null) => build(TfRecordSource.config({ files: [path], features })).open();

test('any records come back, in any order of reading, also where a chunk of the scan cuts them', () => {
  const data = fc.oneof(
    fc.uint8Array({ maxLength: 20 }),
    fc.integer({ min: 0, max: 700_000 }).map((length) => new Uint8Array(length).fill(length)),
    // Heads at and about the end of the first chunk.
    fc.integer({ min: 2 ** 20 - 60, max: 2 ** 20 }).map((length) => new Uint8Array(length)),
  );
  fc.assert(
    fc.property(fc.array(data, { maxLength: 8 }), (records) => {
      write(...records);
      const table = open();
      expect(table.numRecords).toBe(records.length);
      let at = records.reduce((sum, { length }) => sum + length + 16, 0);
      for (let i = records.length - 1; i >= 0; i--) {
        at -= records[i]!.length + 16;
        expect(Buffer.compare(table.read(i).data as Uint8Array, records[i]!)).toBe(0);
        expect(table.place(i)).toBe(`${path}, byte ${at}`);
      }
      table.close();
    }),
    { numRuns: runs(40, 10) },
  );
});

/** A tf.train.Example, its lists packed as TensorFlow packs them, or not. */
function example(
  features: Record<string, { list: 1 | 2 | 3; values: (Uint8Array | number | bigint)[] }>,
  packed = true,
) {
  const map = new ProtobufMessage();
  for (const [name, { list, values }] of Object.entries(features)) {
    const items = new ProtobufMessage();
    const inner = new ProtobufMessage();
    for (const value of values) {
      if (value instanceof Uint8Array) items.blob(1, value);
      else if (list === 2) (packed ? inner : items).float(1, Number(value));
      else items.int(1, Number(value));
    }
    if (list === 2 && packed) {
      const floats = Buffer.alloc(4 * values.length);
      for (const [i, value] of values.entries()) floats.writeFloatLE(Number(value), 4 * i);
      items.blob(1, floats);
    }
    map.message(
      1,
      new ProtobufMessage().string(1, name).message(2, new ProtobufMessage().message(list, items)),
    );
  }
  return new ProtobufMessage().message(1, map).bytes();
}

test('features of examples: one value, values of a shape, any number, and what is not there', () => {
  const features = {
    text: { list: 1, values: [Buffer.from('Gruß')] },
    image: { list: 1, values: [Uint8Array.of(0, 255), Uint8Array.of()] },
    weights: { list: 2, values: [0.5, -2] },
    label: { list: 3, values: [-7] },
    ids: { list: 3, values: [1, 300, -1, 2 ** 40] },
  } as const;
  write(example(features as never), example(features as never, false));
  const table = open({
    text: { dtype: 'string' },
    image: { dtype: 'bytes', shape: null },
    weights: { dtype: 'float32', shape: [1, 2] },
    label: { dtype: 'int64' },
    ids: { dtype: 'int64', shape: null },
    missing: { dtype: 'float32', default: 1 },
    none: { dtype: 'int64', shape: null },
  });
  const wanted = {
    text: 'Gruß',
    image: [Uint8Array.of(0, 255), Uint8Array.of()],
    weights: [0.5, -2],
    label: -7,
    ids: [1, 300, -1, 2 ** 40],
    missing: 1,
    none: [],
  };
  expect([table.read(0), table.read(1)]).toEqual([wanted, wanted]);
});

test('packed integers, negative and large ones', () => {
  const packed = Buffer.from('ffffffffffffffffff01808080808080808080010a', 'hex');
  const feature = new ProtobufMessage().message(3, new ProtobufMessage().blob(1, packed));
  const entry = new ProtobufMessage().string(1, 'n').message(2, feature);
  write(new ProtobufMessage().message(1, new ProtobufMessage().message(1, entry)).bytes());
  expect(open({ n: { dtype: 'int64', shape: null } }).read(0)).toEqual({ n: [-1, -(2n ** 63n), 10] });
});

test('a feature with two lists has the last one; fields of later versions are passed over; an empty list is none', () => {
  const bytes = new ProtobufMessage().blob(1, Buffer.from('a'));
  const ints = new ProtobufMessage().int(1, 7);
  const feature = new ProtobufMessage().message(1, bytes).message(3, ints).message(9, bytes);
  const entry = new ProtobufMessage().string(1, 'n').message(2, feature);
  const empty = new ProtobufMessage()
    .string(1, 'e')
    .message(2, new ProtobufMessage().message(3, new ProtobufMessage()));
  write(new ProtobufMessage().message(1, new ProtobufMessage().message(1, entry).message(1, empty)).bytes());
  const features = { n: { dtype: 'int64' }, e: { dtype: 'int64', default: 4 } } as const;
  expect(open(features).read(0)).toEqual({ n: 7, e: 4 });
});

test.each([
  ['string', 0],
  ['int64', 0.5],
  ['float32', 'x'],
  ['bytes', 'x'],
] as const)('a default of %s cannot be %o', (dtype, value) => {
  expect(() => TfRecordSource.config({ files: [path], features: { a: { dtype, default: value } } })).toThrow(
    /features\.a\.default: must be a value of the dtype: text, a number, or an integer; bytes have none/,
  );
});

test('what an example lacks, has of another type or number, or what is none', () => {
  write(
    example({ label: { list: 3, values: [1, 2] }, text: { list: 1, values: [Uint8Array.of(97, 255)] } }),
    Buffer.from('no example'),
  );
  const reading =
    (features: Features, i = 0) =>
    () =>
      open(features).read(i);
  const place = `${path}, byte 0: feature`;
  expect(reading({ label: { dtype: 'int64' } })).toThrow(
    `${place} 'label' has 2 values; expected 1, of shape [].`,
  );
  expect(reading({ label: { dtype: 'string', shape: [2] } })).toThrow(
    `${place} 'label' has values of type int64; expected string.`,
  );
  expect(reading({ lable: { dtype: 'int64' } })).toThrow(
    `${place} 'lable' is not there. The example has: label, text.`,
  );
  expect(reading({ text: { dtype: 'string' } })).toThrow(`${place} 'text', byte 1: the text is not UTF-8.`);
  expect(reading({ label: { dtype: 'int64' } }, 1)).toThrow(/, byte \d+: not a tf.train.Example: byte \d+: /);
});

test('a changed bit is found by its record or in the scan; a file that is cut off tells where', () => {
  write(Buffer.from('one'), Buffer.from('two'), Buffer.from('three'));
  const whole = Buffer.concat(['one', 'two', 'three'].map((text) => frame(Buffer.from(text))));
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(7), (byte, bit) => {
      const changed = Buffer.from(whole);
      changed[byte]! ^= 1 << bit;
      writeFileSync(path, changed);
      expect(() => {
        const table = open();
        for (let i = 0; i < 3; i++) table.read(i);
      }).toThrow(
        /a\.tfrecord, byte \d+: (the length of record \d is damaged, or the file is not a TFRecord file\.|record \d is damaged: the CRC-32C of its \d bytes differs from the file's\.)$/,
      );
    }),
    { numRuns: runs(100, 20) },
  );
  const cutTo = (length: number, what: string): void => {
    writeFileSync(path, whole);
    truncateSync(path, length);
    expect(() => open()).toThrow(
      `${path}, byte ${length}: the file ends within ${what}. Write it again, or truncate it there.`,
    );
  };
  cutTo(5, 'the head of a record');
  cutTo(18, 'record 0');
  cutTo(whole.length - 1, 'record 2');
  writeFileSync(path, '');
  expect(open().numRecords).toBe(0);
});
