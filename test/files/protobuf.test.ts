/** @file The wire format of protocol buffers, byte by byte. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ProtobufMessage } from '../../src/files/index.js';

const hex = (message: ProtobufMessage): string => Buffer.from(message.bytes()).toString('hex');

test('fields have the bytes that the encoding guide gives', () => {
  expect(hex(new ProtobufMessage().int(1, 150))).toBe('089601');
  expect(hex(new ProtobufMessage().int(1, -2))).toBe('08feffffffffffffffff01');
  expect(hex(new ProtobufMessage().string(2, 'testing'))).toBe('120774657374696e67');
  expect(hex(new ProtobufMessage().message(3, new ProtobufMessage().int(1, 150)))).toBe('1a03089601');
  expect(hex(new ProtobufMessage().float(1, 1.5))).toBe('0d0000c03f');
  expect(hex(new ProtobufMessage().float(1, 1e300))).toBe('0d0000807f');
  expect(hex(new ProtobufMessage().double(1, 1.5))).toBe('09000000000000f83f');
  expect(hex(new ProtobufMessage().blob(20, new Uint8Array(2)))).toBe('a201020000');
});

test('varints hold whole numbers up to 2^53', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => {
      const [, ...digits] = new ProtobufMessage().int(1, value).bytes();
      const read = digits.reduce((sum, byte, index) => sum + BigInt(byte & 0x7f) * 128n ** BigInt(index), 0n);
      expect(read).toBe(BigInt(value));
      expect(digits.every((byte, index) => byte >= 0x80 === index < digits.length - 1)).toBe(true);
    }),
  );
});

test('messages grow as they are written', () => {
  const text = 'x'.repeat(1000);
  const bytes = new ProtobufMessage().int(1, 1).string(2, text).int(3, 3).bytes();
  expect(Buffer.from(bytes).toString('latin1')).toBe(`\x08\x01\x12\xe8\x07${text}\x18\x03`);
});
