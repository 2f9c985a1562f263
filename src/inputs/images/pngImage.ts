/**
 * @file Decoding of PNG images (https://www.w3.org/TR/png-3/), in the memory that their pixels take: chunks are held against
 * the bytes that are there before anything is decompressed, and nothing but the image data is.
 */
import { constants, crc32, inflateSync } from 'node:zlib';
import { checkSize, damaged } from './imageErrors.js';
import type { RawImage } from './rawImage.js';

const SIGNATURE = '89504e470d0a1a0a';

/** Samples of a pixel and depths by colour type. */
const KINDS: Readonly<Record<number, { readonly samples: number; readonly depths: readonly number[] }>> = {
  0: { samples: 1, depths: [1, 2, 4, 8, 16] },
  2: { samples: 3, depths: [8, 16] },
  3: { samples: 1, depths: [1, 2, 4, 8] },
  4: { samples: 2, depths: [8, 16] },
  6: { samples: 4, depths: [8, 16] },
};
const PALETTE = 3;

/** DEFLATE makes at most this many bytes of one (https://zlib.net/zlib_tech.html). */
const MOST_INFLATION = 1032;

/** Pixels of a pass: those at (x + i · dx, y + j · dy). */
interface Pass {
  readonly x: number;
  readonly y: number;
  readonly dx: number;
  readonly dy: number;
}

const pass = (x: number, y: number, dx: number, dy: number): Pass => ({ x, y, dx, dy });
const PLAIN = [pass(0, 0, 1, 1)];
const ADAM7 = [
  ...[pass(0, 0, 8, 8), pass(4, 0, 8, 8), pass(0, 4, 4, 8), pass(2, 0, 4, 4)],
  ...[pass(0, 2, 2, 4), pass(1, 0, 2, 2), pass(0, 1, 1, 2)],
];

interface Header {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly samples: number;
  readonly hasPalette: boolean;
  /** Passes that have pixels. */
  readonly passes: readonly (Pass & { readonly columns: number; readonly rows: number })[];
}

function headerOf(view: DataView, mostPixels: number): Header {
  if (view.byteLength !== 13) throw damaged('PNG', `its header has ${view.byteLength} bytes, not 13`);
  const [width, height] = [view.getUint32(0), view.getUint32(4)];
  const [depth, color, compression, filter, interlace] = [8, 9, 10, 11, 12].map((at) => view.getUint8(at));
  const kind = KINDS[color!];
  if (kind === undefined || !kind.depths.includes(depth!))
    throw damaged('PNG', `there is no colour type ${color} of ${depth} bits`);
  if (compression !== 0 || filter !== 0 || interlace! > 1)
    throw damaged(
      'PNG',
      `there is no compression ${compression}, filter ${filter}, interlacing ${interlace}`,
    );
  checkSize('PNG', width, height, mostPixels);
  const passes = (interlace === 1 ? ADAM7 : PLAIN)
    .map((one) => ({
      ...one,
      columns: Math.ceil((width - one.x) / one.dx),
      rows: Math.ceil((height - one.y) / one.dy),
    }))
    .filter(({ columns, rows }) => columns > 0 && rows > 0);
  return { width, height, depth: depth!, samples: kind.samples, hasPalette: color === PALETTE, passes };
}

/** Bytes of a row of pixels. */
const rowBytes = ({ samples, depth }: Header, columns: number): number =>
  Math.ceil((columns * samples * depth) / 8);

/** The decompressed image data: rows of the passes, a byte of their filter before each. */
function inflated(parts: readonly Uint8Array[], header: Header): Uint8Array {
  const { passes, width, height } = header;
  const size = passes.reduce((sum, { columns, rows }) => sum + rows * (1 + rowBytes(header, columns)), 0);
  const stored = parts.reduce((sum, { length }) => sum + length, 0);
  const wrongSize = (what: string) => damaged('PNG', `it has ${what} data for ${width} × ${height} pixels`);
  if (stored * MOST_INFLATION < size) throw wrongSize('too little');
  let data: Uint8Array;
  try {
    data = inflateSync(Buffer.concat(parts), {
      chunkSize: Math.max(constants.Z_MIN_CHUNK, size + 1),
      maxOutputLength: size,
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw wrongSize('too much');
    throw damaged('PNG', `its data cannot be decompressed: ${(error as Error).message}`);
  }
  if (data.length < size) throw wrongSize('too little');
  return data;
}

/** Undoes the filter of a row in place. @param step bytes of a pixel, at least 1 */
function unfilter(filter: number, row: Uint8Array, above: Uint8Array, step: number): void {
  switch (filter) {
    case 0:
      return;
    case 1:
      for (let i = step; i < row.length; i++) row[i]! += row[i - step]!;
      return;
    case 2:
      for (let i = 0; i < row.length; i++) row[i]! += above[i]!;
      return;
    case 3:
      for (let i = 0; i < row.length; i++) row[i]! += ((i < step ? 0 : row[i - step]!) + above[i]!) >> 1;
      return;
    case 4:
      for (let i = 0; i < row.length; i++)
        row[i]! += i < step ? above[i]! : paeth(row[i - step]!, above[i]!, above[i - step]!);
      return;
    default:
      throw damaged('PNG', `there is no filter ${filter}`);
  }
}

/** Whichever of left, above and above left is closest to left + above − above left. */
function paeth(left: number, above: number, corner: number): number {
  const [toLeft, toAbove] = [Math.abs(above - corner), Math.abs(left - corner)];
  const toCorner = Math.abs(left + above - 2 * corner);
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

/** A sample as a byte: the upper one of 16 bits; one of fewer than 8, as it is stored. */
function sampleAt(row: Uint8Array, at: number, depth: number): number {
  if (depth === 8) return row[at]!;
  if (depth === 16) return row[2 * at]!;
  const bit = at * depth;
  return (row[bit >> 3]! >> (8 - depth - (bit & 7))) & (2 ** depth - 1);
}

/** Pixels of the decompressed rows. */
function pixelsOf(data: Uint8Array, header: Header, palette: Uint8Array | undefined): RawImage {
  const { width, height, depth, samples, hasPalette, passes } = header;
  // An alpha channel, the last one of 2 or 4, is left out.
  const channels = samples < 3 && !hasPalette ? 1 : 3;
  const pixels = new Uint8Array(width * height * channels);
  const scale = depth < 8 ? 255 / (2 ** depth - 1) : 1;
  const step = Math.max(1, (samples * depth) >> 3);
  let at = 0;
  for (const { x, y, dx, dy, columns, rows } of passes) {
    const size = rowBytes(header, columns);
    let above: Uint8Array = new Uint8Array(size);
    for (let j = 0; j < rows; j++) {
      const row = data.subarray(at + 1, at + 1 + size);
      unfilter(data[at]!, row, above, step);
      let to = ((y + j * dy) * width + x) * channels;
      for (let i = 0; i < columns; i++, to += dx * channels) {
        if (!hasPalette)
          for (let c = 0; c < channels; c++) pixels[to + c] = scale * sampleAt(row, i * samples + c, depth);
        else {
          const color = 3 * sampleAt(row, i, depth);
          if (color >= palette!.length)
            throw damaged('PNG', `a pixel has colour ${color / 3} of a palette of ${palette!.length / 3}`);
          for (let c = 0; c < 3; c++) pixels[to + c] = palette![color + c]!;
        }
      }
      above = row;
      at += 1 + size;
    }
  }
  return { height, width, channels, data: pixels };
}

/** Decodes a PNG file. @throws InputError with the reason, which continues from the file's name */
export function decodePng(bytes: Uint8Array, mostPixels: number): RawImage {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.toString('hex', 0, 8) !== SIGNATURE)
    throw damaged('PNG', 'its first 8 bytes are not those of one');
  let header: Header | undefined;
  let palette: Uint8Array | undefined;
  const parts: Uint8Array[] = [];
  for (let at = 8; ; ) {
    if (at + 12 > file.length) throw damaged('PNG', `it is cut off at byte ${file.length}`);
    const length = file.readUInt32BE(at);
    const [start, end] = [at + 8, at + 8 + length];
    const name = file.toString('latin1', at + 4, start).replace(/[^A-Za-z]/g, '?');
    if (end + 4 > file.length)
      throw damaged('PNG', `chunk ${name} at byte ${at} of ${length} bytes is cut off at ${file.length}`);
    if (crc32(file.subarray(at + 4, end)) !== file.readUInt32BE(end))
      throw damaged('PNG', `the checksum of chunk ${name} at byte ${at} is wrong`);
    const contents = file.subarray(start, end);
    if ((header === undefined) !== (name === 'IHDR'))
      throw damaged('PNG', header === undefined ? 'it does not begin with a header' : 'it has two headers');
    if (name === 'IHDR')
      header = headerOf(new DataView(file.buffer, file.byteOffset + start, length), mostPixels);
    if (name === 'IDAT') parts.push(contents);
    if (name === 'PLTE' && header!.hasPalette) palette = contents;
    if (name === 'IEND') break;
    at = end + 4;
  }
  if (header!.hasPalette && (palette === undefined || palette.length % 3 !== 0))
    throw damaged(
      'PNG',
      `its palette ${palette === undefined ? 'is missing' : `has ${palette.length} bytes`}`,
    );
  return pixelsOf(inflated(parts, header!), header!, palette);
}
