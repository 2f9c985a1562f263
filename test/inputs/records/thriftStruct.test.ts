/** @file Ends of structs in Thrift's compact protocol: each type has its bytes, and none ends behind the last one. */
import { expect, test } from 'vitest';
import { endOfStruct } from '../../../src/inputs/records/thriftStruct.js';

const long = [0x80, 0x80, 1];

/** A field's bytes, by its type in the field's head. */
const fields: readonly [what: string, bytes: readonly number[]][] = [
  ['true', [0x11]],
  ['false', [0x12]],
  ['a byte', [0x13, 7]],
  ['an int16', [0x14, ...long]],
  ['an int32', [0x15, ...long]],
  ['an int64', [0x16, ...long]],
  ['a double', [0x17, 1, 2, 3, 4, 5, 6, 7, 8]],
  ['a text', [0x18, 3, 97, 98, 99]],
  ['a list of truths', [0x19, 0x31, 1, 2, 1]],
  ['a list of falsehoods', [0x19, 0x22, 2, 2]],
  ['a list of int32', [0x19, 0x25, ...long, 5]],
  ['a long list', [0x19, 0xf3, 16, ...new Array<number>(16).fill(9)]],
  ['a list of structs', [0x19, 0x2c, 0x11, 0, 0]],
  ['a struct', [0x1c, 0x13, 7, 0]],
  ['a field with its own number', [0x03, 0x80, 1, 7]],
];

test.each(fields)('%s', (_, bytes) => {
  const all = Uint8Array.of(99, ...bytes, ...bytes, 0, 99);
  const end = all.length - 1;
  expect(endOfStruct(all, 1)).toBe(end);
  for (let cut = 1; cut < end; cut++)
    expect(() => endOfStruct(all.subarray(0, cut), 1)).toThrow(/^byte \d+: /);
});

test('a type that is none, and a struct in too many', () => {
  expect(() => endOfStruct(Uint8Array.of(0x1d, 0), 0)).toThrow('byte 1: type 13 is none');
  const nested = (depth: number) =>
    Uint8Array.of(...new Array<number>(depth).fill(0x1c), ...new Array<number>(depth + 1).fill(0));
  expect(endOfStruct(nested(32), 0)).toBe(65);
  expect(() => endOfStruct(nested(33), 0)).toThrow('byte 33: structs nested deeper than 32');
});
