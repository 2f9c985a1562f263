/**
 * @file The wire format of protocol buffers, written for ONNX models and TensorBoard events. A package's writer would make
 * neither of them shorter.
 */

/** Wire type of a field: the low three bits of its tag. */
export const WIRE_TYPES = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
const { varint: VARINT, fixed64: FIXED64, bytes: BYTES, fixed32: FIXED32 } = WIRE_TYPES;

/** A message under way: the fields so far, in a buffer that grows. */
export class ProtobufMessage {
  private buffer = Buffer.alloc(256);
  private length = 0;

  /** A field of type int32, int64, bool or enum; of two's complement where it is negative. */
  int(field: number, value: number): this {
    this.tag(field, VARINT);
    this.varint(BigInt.asUintN(64, BigInt(value)));
    return this;
  }

  float(field: number, value: number): this {
    this.tag(field, FIXED32);
    this.length = this.reserve(4).writeFloatLE(value, this.length);
    return this;
  }

  double(field: number, value: number): this {
    this.tag(field, FIXED64);
    this.length = this.reserve(8).writeDoubleLE(value, this.length);
    return this;
  }

  /** A packed field of repeated floats. */
  floats(field: number, values: Float32Array): this {
    const packed = Buffer.allocUnsafe(4 * values.length);
    for (let i = 0; i < values.length; i++) packed.writeFloatLE(values[i]!, 4 * i);
    return this.blob(field, packed);
  }

  /** A packed field of repeated integers. */
  ints(field: number, values: ArrayLike<number>): this {
    const packed = new ProtobufMessage();
    for (let i = 0; i < values.length; i++) packed.varint(BigInt.asUintN(64, BigInt(values[i]!)));
    return this.message(field, packed);
  }

  blob(field: number, data: Uint8Array): this {
    this.tag(field, BYTES);
    this.varint(BigInt(data.length));
    this.reserve(data.length).set(data, this.length);
    this.length += data.length;
    return this;
  }

  string(field: number, text: string): this {
    return this.blob(field, Buffer.from(text));
  }

  message(field: number, inner: ProtobufMessage): this {
    return this.blob(field, inner.bytes());
  }

  /** The bytes so far. */
  bytes(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  private tag(field: number, wireType: number): void {
    this.varint(BigInt((field << 3) | wireType));
  }

  /** Seven bits a byte, low ones first. */
  private varint(value: bigint): void {
    this.reserve(10);
    let rest = value;
    for (; rest > 127n; rest >>= 7n) this.buffer[this.length++] = Number(rest & 127n) | 128;
    this.buffer[this.length++] = Number(rest);
  }

  private reserve(more: number): Buffer {
    if (this.length + more > this.buffer.length) {
      const grown = Buffer.alloc(Math.max(2 * this.buffer.length, this.length + more));
      grown.set(this.buffer);
      this.buffer = grown;
    }
    return this.buffer;
  }
}
