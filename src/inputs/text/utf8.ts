/** @file Text of UTF-8 bytes, and the place of bytes that are none. */
import { isUtf8 } from 'node:buffer';
import { InputError } from '../inputErrors.js';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of UTF-8 bytes; a byte order mark is part of it.
 *
 * @param placeOf the place of the byte at an offset, for messages.
 * @param advice for invalid bytes.
 * @throws InputError with the place of the first invalid bytes.
 */
export function utf8Text(bytes: Uint8Array, placeOf: (offset: number) => string, advice = ''): string {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    checkUtf8(bytes, placeOf, advice);
    throw new InputError(`${placeOf(0)}: a text of ${bytes.length} bytes is longer than a string can be.`, {
      cause: error,
    });
  }
}

/** @throws InputError with the place of the first bytes that are no character, as `utf8Text` */
export function checkUtf8(bytes: Uint8Array, placeOf: (offset: number) => string, advice = ''): void {
  if (isUtf8(bytes)) return;
  throw new InputError(`${placeOf(firstInvalid(bytes))}: the text is not UTF-8.${advice}`);
}

/** Where a byte of a file is. */
export const byteOf =
  (path: string) =>
  (offset: number): string =>
    `${path}, byte ${offset}`;

/** How texts begin: byte order marks, or characters of ASCII with a zero beside them. */
const isUtf16 = ([a, b, c, d]: Uint8Array): boolean =>
  (a === 0xff && b === 0xfe) ||
  (a === 0xfe && b === 0xff) ||
  (a === 0 && b! > 0 && c === 0 && d! > 0) ||
  (a! > 0 && b === 0 && c! > 0 && d === 0);

/**
 * Where the text of a file begins: behind a byte order mark, if there is one.
 *
 * @param first at least the file's first 4 bytes, unless it has fewer. @throws InputError for UTF-16
 */
export function utf8Start(first: Uint8Array, path: string): number {
  if (isUtf16(first))
    throw new InputError(
      `${byteOf(path)(0)}: the text is UTF-16; expected UTF-8. Convert it, as by iconv -f UTF-16 -t UTF-8.`,
    );
  const [a, b, c] = first;
  return a === 0xef && b === 0xbb && c === 0xbf ? 3 : 0;
}

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
