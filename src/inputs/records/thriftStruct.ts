/** @file Structs of Thrift's compact protocol, whose lengths and counts are checked against the bytes that are there. */

const [STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12,
];
/** Parquet nests six of them. */
const DEEPEST = 32;

/**
 * The position behind a struct that a library may read then.
 *
 * @throws Error for lengths and counts beyond `bytes`, and for bytes that are no struct
 */
export function endOfStruct(bytes: Uint8Array, start: number): number {
  let at = start;
  const take = (count: number, what: string): void => {
    if (count > bytes.length - at)
      throw new Error(`byte ${at}: ${what} of ${count} bytes, of which ${bytes.length - at} are there`);
    at += count;
  };
  /** A number of seven bits a byte. */
  const varint = (mostBytes: number): number => {
    let value = 0;
    for (let i = 0; i < mostBytes; i++) {
      take(1, 'a number');
      const byte = bytes[at - 1]!;
      value += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) return value;
    }
    throw new Error(`byte ${at}: a number of more than ${mostBytes} bytes`);
  };
  const element = (type: number, depth: number): void => {
    if (type === BYTE) take(1, 'a number');
    else if (type === I16 || type === I32) varint(5);
    else if (type === I64) varint(10);
    else if (type === DOUBLE) take(8, 'a number');
    else if (type === BINARY) take(varint(5), 'a text');
    else if (type === LIST) list(depth);
    else if (type === STRUCT) struct(depth);
    else throw new Error(`byte ${at}: type ${type} is none`);
  };
  const list = (depth: number): void => {
    take(1, 'a list');
    const head = bytes[at - 1]!;
    const size = head >> 4 === 15 ? varint(5) : head >> 4;
    // Each element takes a byte at least.
    if (size > bytes.length - at)
      throw new Error(`byte ${at}: a list of ${size} elements in ${bytes.length - at} bytes`);
    const type = head & 15;
    for (let i = 0; i < size; i++) element(type === TRUE || type === FALSE ? BYTE : type, depth);
  };
  const struct = (depth: number): void => {
    if (depth > DEEPEST) throw new Error(`byte ${at}: structs nested deeper than ${DEEPEST}`);
    for (;;) {
      take(1, 'a field');
      const head = bytes[at - 1]!;
      const type = head & 15;
      if (type === STOP) return;
      if (head >> 4 === 0) varint(3);
      if (type !== TRUE && type !== FALSE) element(type, depth + 1);
    }
  };
  struct(0);
  return at;
}
