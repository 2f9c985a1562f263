/** @file PNG files of float images (ISO/IEC 15948). */
import { crc32, deflateSync } from 'node:zlib';

/** Color types by number of channels: grey, RGB, RGBA. */
const COLOR_TYPES = { 1: 0, 3: 2, 4: 6 } as const;

export type Channels = keyof typeof COLOR_TYPES;

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/** A chunk: length, type, data, CRC of type and data. */
function chunk(type: string, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length);
  bytes.write(type, 4, 'latin1');
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

/**
 * The PNG of an image with 8 bits a channel.
 *
 * @param pixels [height, width, channels] from 0 to 1; values outside are clipped, NaN is 0.
 */
export function encodePng(
  pixels: ArrayLike<number>,
  height: number,
  width: number,
  channels: Channels,
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.set([8, COLOR_TYPES[channels]], 8);
  // Each row starts with its filter: none.
  const stride = 1 + width * channels;
  const rows = new Uint8ClampedArray(height * stride);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width * channels; x++)
      rows[y * stride + 1 + x] = 255 * pixels[y * width * channels + x]!;
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', new Uint8Array(0)),
  ]);
}
