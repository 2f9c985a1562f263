/** @file Text of UTF-8 bytes, and the place of bytes that are none. */
import { isUtf8 } from 'node:buffer';
import { InputError } from './inputErrors.js';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of UTF-8 bytes; a byte order mark is part of it.
 *
 * @param placeOf the place of the byte at an offset, for messages. @param advice what to do about bytes that are no text.
 * @throws InputError with the place of the first bytes that are no character.
 */
export function utf8Text(bytes: Uint8Array, placeOf: (offset: number) => string, advice = ''): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    const offset = firstInvalid(bytes);
    const problem =
      offset < bytes.length
        ? `${placeOf(offset)}: the text is not UTF-8.${advice}`
        : `${placeOf(0)}: a text of ${bytes.length} bytes is longer than a string can be.`;
    throw new InputError(problem, { cause: error });
  }
}

/** Where a byte of a file is. */
export const byteOf =
  (path: string) =>
  (offset: number): string =>
    `${path}, byte ${offset}`;

/** Bytes of a character by its first one; 0 for a byte that begins none. */
function lengthOf(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

function firstInvalid(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const length = lengthOf(bytes[at]!);
    if (length === 0 || !isUtf8(bytes.subarray(at, at + length))) break;
    at += length;
  }
  return at;
}
