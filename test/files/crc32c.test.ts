/** @file CRC-32C: known answers, and any bytes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c, maskedCrc32c } from '../../src/files/index.js';

test('crc32c gives the known answers of RFC 3720', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index))).toBe(0x46dd794e);
  expect(crc32c(new Uint8Array(0))).toBe(0);
});

test('any bytes at any offset have the remainder of a division bit by bit', () => {
  const bitByBit = (bytes: Uint8Array): number => {
    let crc = 0xffffffff;
    for (const byte of bytes) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc >>> 0;
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.nat(9), (bytes, from) => {
      expect(crc32c(bytes.subarray(from))).toBe(bitByBit(bytes.subarray(from)));
    }),
  );
});

test('the masked crc can be unmasked', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const rotated = (maskedCrc32c(bytes) - 0xa282ead8) >>> 0;
      expect(((rotated >>> 17) | (rotated << 15)) >>> 0).toBe(crc32c(bytes));
    }),
  );
});
