/** @file Writes the few protocol buffer messages of event files (tensorflow/core/util/event.proto). */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** A field on the wire. A message is the concatenation of its fields. */
type Field = Uint8Array;

export function int64Field(number: number, value: number): Field {
  return Uint8Array.from([...varint((number << 3) | VARINT), ...varint(value)]);
}

export function doubleField(number: number, value: number): Field {
  const tag = varint((number << 3) | FIXED64);
  const field = new Uint8Array(tag.length + 8);
  field.set(tag);
  new DataView(field.buffer).setFloat64(tag.length, value, true);
  return field;
}

export function floatField(number: number, value: number): Field {
  const tag = varint((number << 3) | FIXED32);
  const field = new Uint8Array(tag.length + 4);
  field.set(tag);
  new DataView(field.buffer).setFloat32(tag.length, value, true);
  return field;
}

export function stringField(number: number, value: string): Field {
  return messageField(number, Buffer.from(value));
}

/** An embedded message of these fields. */
export function messageField(number: number, ...fields: readonly Field[]): Field {
  const body = Buffer.concat(fields);
  return Buffer.concat([Uint8Array.from([...varint((number << 3) | BYTES), ...varint(body.length)]), body]);
}

export function message(...fields: readonly Field[]): Uint8Array {
  return Buffer.concat(fields);
}

/** Seven bits a byte, low ones first; for whole numbers from 0 to 2^53. */
function varint(value: number): number[] {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`expected a whole number >= 0, got ${value}`);
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}
