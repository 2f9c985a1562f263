/** @file PNG files, chunk by chunk. */
import { crc32, deflateSync } from 'node:zlib';

/** A chunk with its checksum. */
export function chunk(name: string, contents: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(contents.length);
  head.write(name, 4, 'latin1');
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(Buffer.concat([head.subarray(4), contents])));
  return Buffer.concat([head, contents, tail]);
}

/** The fields of a header. */
export interface PngFields {
  readonly width: number;
  readonly height: number;
  readonly depth?: number;
  readonly color?: number;
  readonly interlace?: number;
}

export function header({ width, height, depth = 8, color = 0, interlace = 0 }: PngFields): Buffer {
  const contents = Buffer.alloc(13);
  contents.writeUInt32BE(width);
  contents.writeUInt32BE(height, 4);
  contents.set([depth, color, 0, 0, interlace], 8);
  return chunk('IHDR', contents);
}

/** A file of these chunks. */
export const pngOf = (...chunks: readonly Uint8Array[]): Buffer =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...chunks]);

/** A file of these rows, each with its filter before it. @param more chunks before the data */
export const pngOfRows = (fields: PngFields, rows: Uint8Array, more: readonly Uint8Array[] = []): Buffer =>
  pngOf(header(fields), ...more, chunk('IDAT', deflateSync(rows)), chunk('IEND'));
