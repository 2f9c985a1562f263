/** @file Compressed parts of column files, unpacked to exactly the length that the file states. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Decompress } from 'fzstd';
import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { compressors } from 'hyparquet-compressors';
import { stated } from './columnFile.js';

/** The longest output of a codec for a byte: those of a run of one value. */
const MOST_FOR_A_BYTE = {
  // A copy of 64 bytes takes 3.
  SNAPPY: 22,
  GZIP: 1032,
  // A block of 16 MiB takes some bytes.
  BROTLI: 2 ** 22,
  LZ4: 255,
  LZ4_RAW: 255,
  // A block of 128 KiB takes 4.
  ZSTD: 2 ** 15,
} as const;

type Codec = keyof typeof MOST_FOR_A_BYTE;

type Unpack = (bytes: Uint8Array, length: number) => Uint8Array;

const UNPACK: Readonly<Record<Codec, Unpack>> = {
  SNAPPY(bytes, length) {
    const output = new Uint8Array(length);
    snappyUncompress(bytes, output);
    return output;
  },
  GZIP: (bytes, length) => gunzipSync(bytes, { maxOutputLength: length }),
  BROTLI: (bytes, length) => brotliDecompressSync(bytes, { maxOutputLength: length }),
  LZ4(bytes, length) {
    // Hadoop's frames have two lengths before each block.
    const framed = hadoopLength(bytes);
    if (framed === undefined) return UNPACK.LZ4_RAW(bytes, length);
    if (framed !== length) throw new Error(`its frames have ${framed} bytes; expected ${length}`);
    return compressors.LZ4!(bytes, length);
  },
  LZ4_RAW(bytes, length) {
    const found = lz4Length(bytes);
    if (found !== length) throw new Error(`its LZ4 block has ${found} bytes; expected ${length}`);
    return compressors.LZ4_RAW!(bytes, length);
  },
  ZSTD: unpackZstd,
};

/**
 * The unpacked bytes.
 *
 * @param length their number, from the file.
 * @throws an error for damaged bytes, and for any other number
 */
export function unpackedBytes(codec: string | undefined, bytes: Uint8Array, length: number): Uint8Array {
  if (codec === undefined || !Object.hasOwn(UNPACK, codec))
    throw new Error(`the compression ${stated(codec)} is not known`);
  // A page of nulls alone has no bytes.
  if (length === 0) return new Uint8Array(0);
  const most = MOST_FOR_A_BYTE[codec as Codec] * (bytes.length + 8);
  if (length > most)
    throw new Error(`${bytes.length} bytes of ${codec} hold ${most} at most; the file says ${length}`);
  const output = UNPACK[codec as Codec](bytes, length);
  if (output.length === length) return output;
  throw new Error(`its ${codec} data has ${output.length} bytes; the file says ${length}`);
}

/** The length of an LZ4 block's output. @throws Error for other bytes */
function lz4Length(bytes: Uint8Array): number {
  let [at, length] = [0, 0];
  const more = (nibble: number): number => {
    let [count, byte] = [nibble, nibble === 15 ? 255 : 0];
    while (byte === 255) {
      if (at >= bytes.length) throw new Error('an LZ4 block is cut off');
      byte = bytes[at++]!;
      count += byte;
    }
    return count;
  };
  while (at < bytes.length) {
    const token = bytes[at++]!;
    const literals = more(token >> 4);
    [at, length] = [at + literals, length + literals];
    if (at === bytes.length) break;
    if (at + 2 > bytes.length) throw new Error('an LZ4 block is cut off');
    at += 2;
    length += more(token & 15) + 4;
  }
  return length;
}

/** The unpacked length of Hadoop's frames of LZ4 blocks; undefined for other bytes. */
function hadoopLength(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [at, length] = [0, 0];
  while (at + 8 < bytes.length) {
    const [inside, size] = [view.getUint32(at), view.getUint32(at + 4)];
    const end = at + 8 + size;
    if (end > bytes.length) return undefined;
    try {
      if (lz4Length(bytes.subarray(at + 8, end)) !== inside) return undefined;
    } catch {
      return undefined;
    }
    [at, length] = [end, length + inside];
  }
  return at === bytes.length ? length : undefined;
}

/** Windows of this size, 2^17, hold a block; larger ones are needed for longer output alone. */
const SMALLEST_WINDOW = 17;

function unpackZstd(bytes: Uint8Array, length: number): Uint8Array {
  const output = new Uint8Array(length);
  let filled = 0;
  for (let at = 0; at < bytes.length; ) {
    const frame = Uint8Array.from(bytes.subarray(at, endOfFrame(bytes, at)));
    at += frame.length;
    if (isSkippable(frame)) continue;
    narrow(frame, length);
    const decoder = new Decompress((part) => {
      if (filled + part.length > length) throw new Error(`its Zstandard data has more than ${length} bytes`);
      output.set(part, filled);
      filled += part.length;
    });
    decoder.push(frame, true);
  }
  return output.subarray(0, filled);
}

const isSkippable = (bytes: Uint8Array): boolean => (bytes[0]! & 0xf0) === 0x50;

/** End of a frame of Zstandard (RFC 8878): behind its blocks. @throws Error for malformed and truncated frames */
function endOfFrame(bytes: Uint8Array, start: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const cutOff = (): never => {
    throw new Error('a frame of Zstandard is damaged or cut off');
  };
  if (start + 9 > bytes.length) cutOff();
  const magic = view.getUint32(start, true);
  if (magic >>> 4 === 0x184d2a5) return Math.min(bytes.length, start + 8 + view.getUint32(start + 4, true));
  if (magic !== 0xfd2fb528) cutOff();
  const flags = bytes[start + 4]!;
  const isSingle = (flags >> 5) & 1;
  const sizeBytes = flags >> 6 === 0 ? isSingle : 1 << (flags >> 6);
  let at = start + 6 - isSingle + [0, 1, 2, 4][flags & 3]! + sizeBytes;
  for (let isLast = false; !isLast; ) {
    if (at + 3 > bytes.length) cutOff();
    const head = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    isLast = (head & 1) === 1;
    // A block of one value has but that.
    at += 3 + (((head >> 1) & 3) === 1 ? 1 : head >> 3);
  }
  at += 4 * ((flags >> 2) & 1);
  return at > bytes.length ? cutOff() : at;
}

/** Makes a frame's window, which the decoder allocates and moves at each block, no larger than its output. @throws Error for a frame of another size */
function narrow(frame: Uint8Array, length: number): void {
  const flags = frame[4]!;
  if (((flags >> 5) & 1) === 0) {
    const exponent = Math.max(SMALLEST_WINDOW, Math.ceil(Math.log2(length)));
    if (10 + (frame[5]! >> 3) > exponent) frame[5] = (exponent - 10) << 3;
    return;
  }
  const sizeBytes = flags >> 6 === 0 ? 1 : 1 << (flags >> 6);
  const at = 5 + [0, 1, 2, 4][flags & 3]!;
  let size = sizeBytes === 2 ? 256 : 0;
  for (let i = 0; i < sizeBytes; i++) size += frame[at + i]! * 256 ** i;
  if (size > length) throw new Error(`its Zstandard frame has ${size} bytes; the file says ${length}`);
}
