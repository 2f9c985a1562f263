/** @file Record files: any values, in any order of reading; files that are damaged, cut off or foreign. */
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openRecordFile, RecordFileWriter } from '../../../src/inputs/records/recordFile.js';
import type { DataRecord } from '../../../src/inputs/records/recordTable.js';
import { temporaryDirectory } from '../../command.js';
import { runs } from '../../faults/campaign.js';

const directory = temporaryDirectory();
const path = join(directory, 'records');

function write(records: readonly DataRecord[]): void {
  const writer = new RecordFileWriter(path);
  for (const [i, record] of records.entries()) writer.add(record, 3 * i);
  writer.finish('abc', { of: 'tests' });
}

const value = fc.oneof(
  fc.double(),
  fc.string({ unit: 'binary' }),
  fc.bigInt(),
  fc.constant(null),
  fc.boolean(),
  fc.int32Array({ maxLength: 50 }),
  fc.uint8Array({ maxLength: 5 }),
  fc.float32Array(),
  fc.array(fc.string()),
);

test('any records come back in any order, with their positions', () => {
  fc.assert(
    fc.property(
      fc.array(fc.dictionary(fc.string(), value, { noNullPrototype: true }), { maxLength: 70 }),
      (records) => {
        write(records);
        const file = openRecordFile(path);
        expect([file.numRecords, file.digest, file.about]).toEqual([records.length, 'abc', { of: 'tests' }]);
        for (let i = records.length - 1; i >= 0; i--) {
          expect(file.read(i)).toEqual(records[i]);
          expect(file.position(i)).toBe(3 * i);
        }
        file.close();
      },
    ),
    { numRuns: runs(60, 12) },
  );
  expect(readdirSync(directory)).toEqual(['records']);
});

test('a changed bit is found in the record that it changes, wherever it is', () => {
  const records = Array.from({ length: 40 }, (_, i) => ({ text: `record ${i}`, ids: Int32Array.of(i, -i) }));
  write(records);
  const whole = readFileSync(path);
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(7), (byte, bit) => {
      const changed = Buffer.from(whole);
      changed[byte]! ^= 1 << bit;
      writeFileSync(path, changed);
      let told = 0;
      const known = (error: unknown): void => {
        told++;
        expect((error as Error).message).toMatch(
          /, byte \d+: ((the index of )?record \d+ is damaged\. Write the file anew\.|the record file ends before its index, or is damaged there\. Write it anew\.)$|is not a record file of Luthier: it begins with /,
        );
      };
      try {
        const file = openRecordFile(path);
        for (const [i, record] of records.entries()) {
          try {
            expect([file.read(i), file.position(i)]).toEqual([record, 3 * i]);
          } catch (error) {
            known(error);
          }
        }
        file.close();
      } catch (error) {
        known(error);
      }
      return told > 0 || isSlack(whole, byte);
    }),
    { numRuns: runs(300, 40) },
  );
});

/** The rest of the index's last block, and the footer's own bytes, are read by none of these. */
function isSlack(whole: Buffer, byte: number): boolean {
  const { indexAt } = JSON.parse(whole.subarray(whole.lastIndexOf('{"numRecords"'), -16).toString());
  return byte >= indexAt + 3 * 72 - 60 && byte < whole.lastIndexOf('{"numRecords"');
}

test('a file that is cut off anywhere, and one of another kind', () => {
  write([{ x: 1 }, { x: 2 }]);
  const { length } = readFileSync(path);
  truncateSync(path, length - 1);
  expect(() => openRecordFile(path, 'a.records')).toThrow(
    `a.records, byte ${length - 1}: the record file ends before its index, or is damaged there. Write it anew.`,
  );
  writeFileSync(path, 'PAR1 and more');
  expect(() => openRecordFile(path, 'a.records')).toThrow(
    `a.records is not a record file of Luthier: it begins with "PAR1 and", not with 'LUTHREC1'.`,
  );
});

test('nothing is left of a file that was not finished, and nothing of an unstorable record', () => {
  write([{ x: 1 }]);
  const writer = new RecordFileWriter(path);
  writer.add({ x: 2 }, 0);
  expect(() => writer.add({ f: () => 1 }, 1)).toThrow(
    'record 1 cannot be stored: () => 1 could not be cloned.',
  );
  writer.discard();
  expect(readdirSync(directory)).toEqual(['records']);
  expect(openRecordFile(path).read(0)).toEqual({ x: 1 });
});

test('a record of a later format of v8', () => {
  const writer = new RecordFileWriter(path);
  const [payload, head] = [Buffer.of(0xff, 99, 0x6f, 0x7b, 0), Buffer.alloc(16)];
  writer.add({}, 0);
  writer.finish('');
  const bytes = readFileSync(path);
  const length = bytes.readUInt32LE(8);
  expect(length).toBe(payload.length);
  payload.copy(bytes, 24);
  bytes.copy(head, 0, 8, 24);
  bytes.writeUInt32LE(crc32(payload, crc32(head.subarray(8), 0)), 12);
  writeFileSync(path, bytes);
  expect(() => openRecordFile(path, 'a.records').read(0)).toThrow(
    `a.records, byte 8: this Node (${process.version}) cannot read record 0, which another version wrote: `,
  );
});
