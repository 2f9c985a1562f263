/** @file Tables of records in memory: places, digests, and what is no record. */
import { expect, test } from 'vitest';
import { memoryTable, tableOf } from '../../../src/inputs/records/recordTable.js';

test('records are read by number, each with its place', () => {
  const table = tableOf(new Set([{ x: 1 }, { x: 2 }]));
  expect([table.numRecords, table.read(1), table.place(1), table.files]).toEqual([
    2,
    { x: 2 },
    'record 1',
    [],
  ]);
  expect(memoryTable([{}], () => 'a.csv:2').place(0)).toBe('a.csv:2');
});

test('the digest tells values, types and order apart', () => {
  const tables = [
    [],
    [{ x: 1 }, { x: 2 }],
    [{ x: 2 }, { x: 1 }],
    [{ x: '1' }, { x: 2 }],
    [{ x: 1n }, { x: 2 }],
    [{ x: Float32Array.of(1, 2) }],
    [{ x: Int32Array.of(1, 2) }],
    [{ x: Float32Array.of(1, 3) }],
  ];
  const digests = tables.map((records) => tableOf(records).digest);
  expect(new Set(digests).size).toBe(tables.length);
  expect(tables.map((records) => tableOf(records).digest)).toEqual(digests);
});

test.each([[1], [null], [[1, 2]], ['text'], [undefined]])('%j is no record', (value) => {
  expect(() => tableOf([{}, value])).toThrow(
    `record 1: expected an object, { column: value, … }; got ${JSON.stringify(value)}`,
  );
});
