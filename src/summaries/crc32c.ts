/**
 * @file CRC-32C (Castagnoli), which TFRecord frames carry; zlib's crc32 is another polynomial, and packages that have this one
 * bring binaries or more code than the loop.
 */

/** The Castagnoli polynomial, bits reversed. */
const POLYNOMIAL = 0x82f63b78;
const MASK_DELTA = 0xa282ead8;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
  return remainder;
});

/** CRC-32C of some bytes, as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}

/** The CRC as TFRecord stores it: rotated and shifted, so that the CRC of data with CRCs in it stays sound. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}
