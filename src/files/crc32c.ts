/**
 * @file CRC-32C (Castagnoli), which TFRecord frames carry; zlib's crc32 is another polynomial, and packages that have this one
 * bring binaries or more code than the loop.
 */

/** The Castagnoli polynomial, bits reversed. */
const POLYNOMIAL = 0x82f63b78;
const MASK_DELTA = 0xa282ead8;

/** Remainders of a byte with 0 to 7 zero bytes behind it, 256 each. */
const TABLES = new Uint32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  TABLES[byte] = remainder;
}
for (let at = 256; at < TABLES.length; at++) {
  const before = TABLES[at - 256]!;
  TABLES[at] = (before >>> 8) ^ TABLES[before & 0xff]!;
}

/** CRC-32C of some bytes, as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array): number {
  const t = TABLES;
  let crc = 0xffffffff;
  let at = 0;
  // Eight bytes at once take a fifth of the time (slicing by 8, Kounavis and Berry 2005).
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      t[1792 + (crc & 0xff)]! ^
      t[1536 + ((crc >>> 8) & 0xff)]! ^
      t[1280 + ((crc >>> 16) & 0xff)]! ^
      t[1024 + (crc >>> 24)]! ^
      t[768 + bytes[at + 4]!]! ^
      t[512 + bytes[at + 5]!]! ^
      t[256 + bytes[at + 6]!]! ^
      t[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}

/** The CRC as TFRecord stores it: rotated and shifted, so that the CRC of data with CRCs in it stays sound. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}
