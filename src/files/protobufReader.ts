/** @file Reading of protocol buffers' wire format: TensorFlow's examples. */

import { WIRE_TYPES } from './protobuf.js';

const { varint: VARINT, fixed64: FIXED64, bytes: BYTES, fixed32: FIXED32 } = WIRE_TYPES;

/**
 * The fields of a message, one after the other: after `next()` is true, `field` has its number, and `blob`, `message`,
 * `addInts` or `addFloats` its value.
 */
export class ProtobufReader {
  field = 0;
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;
  #wireType = 0;
  /** The value: where it begins and ends. */
  #from = 0;
  #to = 0;

  constructor(bytes: Buffer, from = 0, to = bytes.length) {
    this.#bytes = bytes;
    this.#at = from;
    this.#end = to;
  }

  /** Goes to the next field; false at the end. @throws RangeError for a malformed message. */
  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = Number(this.#varint());
    this.field = tag >>> 3;
    this.#wireType = tag & 7;
    if (this.#wireType === BYTES) {
      const length = Number(this.#varint());
      [this.#from, this.#to] = [this.#at, this.#at + length];
    } else {
      this.#from = this.#at;
      if (this.#wireType === VARINT) this.#varint();
      else if (this.#wireType === FIXED64) this.#at += 8;
      else if (this.#wireType === FIXED32) this.#at += 4;
      else throw new RangeError(`byte ${this.#from}: wire type ${this.#wireType} is none`);
      this.#to = this.#at;
    }
    if (this.#to > this.#end) throw new RangeError(`byte ${this.#from}: a field ends behind its message`);
    this.#at = this.#to;
    return true;
  }

  /** Bytes of a field of type bytes or string, which stay the message's. */
  get blob(): Buffer {
    this.#expect(BYTES);
    return this.#bytes.subarray(this.#from, this.#to);
  }

  /** The message in a field. */
  get message(): ProtobufReader {
    this.#expect(BYTES);
    return new ProtobufReader(this.#bytes, this.#from, this.#to);
  }

  /** Appends the integers of a repeated field of type int64, packed or not; bigints beyond 2^53. */
  addInts(values: (number | bigint)[]): void {
    if (this.#wireType !== BYTES) this.#expect(VARINT);
    const reader = new ProtobufReader(this.#bytes, this.#from, this.#to);
    while (reader.#at < reader.#end) {
      const value = BigInt.asIntN(64, reader.#varint());
      const number = Number(value);
      values.push(Number.isSafeInteger(number) ? number : value);
    }
  }

  /** Appends the numbers of a repeated field of type float, packed or not. */
  addFloats(values: number[]): void {
    if (this.#wireType !== BYTES) this.#expect(FIXED32);
    if ((this.#to - this.#from) % 4 !== 0) throw new RangeError(`byte ${this.#from}: a float is cut off`);
    for (let at = this.#from; at < this.#to; at += 4) values.push(this.#bytes.readFloatLE(at));
  }

  #expect(wireType: number): void {
    if (this.#wireType !== wireType)
      throw new RangeError(
        `byte ${this.#from}: field ${this.field} has wire type ${this.#wireType}, not ${wireType}`,
      );
  }

  #varint(): bigint {
    let [low, shift] = [0, 0];
    // Nearly all integers have at most four bytes.
    for (; shift < 28; shift += 7) {
      const byte = this.#byte();
      low |= (byte & 127) << shift;
      if (byte < 128) return BigInt(low);
    }
    let value = BigInt(low);
    for (; shift < 70; shift += 7) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << BigInt(shift);
      if (byte < 128) return value;
    }
    throw new RangeError(`byte ${this.#at}: an integer of more than ten bytes`);
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new RangeError(`byte ${this.#at}: the message is cut off`);
    return this.#bytes[this.#at++]!;
  }
}
