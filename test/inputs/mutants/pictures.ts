/** @file Mutants of PNG and JPEG files. */
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import jpeg from 'jpeg-js';
import { build } from '../../../src/hparams/index.js';
import { ImageFolder, ImageInput } from '../../../src/inputs/index.js';
import { chunk, pngOfRows } from '../images/pngFiles.js';
import { integerSite, type MutantKind, type Seed, type Site } from './mutantKind.js';

const input = build(
  ImageInput.config({
    height: 8,
    width: 8,
    split: 'all',
    batchSize: 1,
    source: ImageFolder.config({ directory: 'none' }),
  }),
);

/** Reads as predictions do. */
async function read(path: string): Promise<unknown> {
  const { inputs } = await input.exampleBatch([path], [], { first: 0, readsFiles: true });
  return inputs;
}

function problemOf(values: unknown): string | undefined {
  const { shape, data } = values as { readonly shape: readonly number[]; readonly data: Float32Array };
  if (shape.join() !== '1,8,8,3' || data.length !== 192) return `its shape is ${shape}`;
  return data.every((value) => value >= 0 && value <= 1) ? undefined : 'a pixel is not from 0 to 1';
}

/** Lengths of the chunks of a PNG file, sizes and kinds of its header. */
function pngSites(bytes: Buffer): Site[] {
  const sites: Site[] = [];
  const site = (name: string, at: number, size: 1 | 4) =>
    sites.push(integerSite(bytes, name, at, size, { isBigEndian: true, isFree: true }));
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at))
    sites.push(
      integerSite(bytes, `length of ${bytes.toString('latin1', at + 4, at + 8)}`, at, 4, {
        isBigEndian: true,
      }),
    );
  site('width', 16, 4);
  site('height', 20, 4);
  for (const [i, name] of ['depth', 'colour', 'compression', 'filter', 'interlacing'].entries())
    site(name, 24 + i, 1);
  return sites;
}

/** Writes the checksums of all chunks that are whole. */
function mend(damaged: Uint8Array): Uint8Array {
  const bytes = Buffer.from(damaged);
  for (let at = 8; at + 12 <= bytes.length; ) {
    const end = at + 8 + bytes.readUInt32BE(at);
    if (end + 4 > bytes.length) break;
    bytes.writeUInt32BE(crc32(bytes.subarray(at + 4, end)), end);
    at = end + 4;
  }
  return bytes;
}

function pngSeed(
  name: string,
  fields: Parameters<typeof pngOfRows>[0],
  rowBytes: number,
  more: Uint8Array[] = [],
): Seed {
  const rows = Uint8Array.from({ length: fields.height * (rowBytes + 1) }, (_, i) =>
    i % (rowBytes + 1) === 0 ? Math.floor(i / (rowBytes + 1)) % 5 : (i * 37) % 251,
  );
  const bytes = pngOfRows(fields, rows, more);
  return { name, bytes, sites: pngSites(bytes), checksummed: [[8, bytes.length]] };
}

export const png: MutantKind = {
  name: 'PNG',
  seeds() {
    const palette = chunk(
      'PLTE',
      Uint8Array.from({ length: 768 }, (_, i) => i % 256),
    );
    const profile = chunk('iCCP', Buffer.from('profile\0\0none'));
    const size = { width: 24, height: 16 };
    return [
      pngSeed('colours.png', { ...size, color: 2 }, 72, [profile, chunk('tEXt', Buffer.from('a\0b'))]),
      pngSeed('indexed.png', { ...size, color: 3 }, 24, [palette]),
      pngSeed('wide.png', { ...size, color: 6, depth: 16 }, 192),
      pngSeed('bits.png', { ...size, depth: 1 }, 3),
    ];
  },
  read,
  mend,
  problemOf,
  tries: 2000,
  short: 100,
};

/** Lengths of the segments, the frame's numbers, and those of the scans. Other ones may be whole: a JPEG file has no checksums. */
function jpegSites(bytes: Buffer): Site[] {
  const sites: Site[] = [];
  const site = (name: string, at: number, size: 1 | 2) =>
    sites.push(integerSite(bytes, name, at, size, { isBigEndian: true, isFree: true }));
  for (let at = 2; at + 4 <= bytes.length; ) {
    const marker = bytes[at + 1]!;
    if (bytes[at] !== 0xff || marker === 0xd9) break;
    const name = marker.toString(16);
    site(`length of ${name}`, at + 2, 2);
    if (marker === 0xc0 || marker === 0xc2) {
      site('bits', at + 4, 1);
      site('height', at + 5, 2);
      site('width', at + 7, 2);
      for (let i = 0; i <= 3 * bytes[at + 9]!; i++) site(`byte ${i} of the components`, at + 9 + i, 1);
    }
    const end = at + 2 + bytes.readUInt16BE(at + 2);
    if (marker === 0xc4 || marker === 0xdb || marker === 0xda || marker === 0xdd)
      for (let i = at + 4; i < Math.min(end, at + 22); i++) site(`byte ${i - at} of ${name}`, i, 1);
    at = end;
    if (marker === 0xda) while (at + 1 < bytes.length && !(bytes[at] === 0xff && bytes[at + 1]! > 0)) at++;
  }
  return sites;
}

/** Files that libjpeg has written. */
const recorded: { readonly files: Readonly<Record<string, { readonly bytes: string }>> } = JSON.parse(
  readFileSync(new URL('../../fixtures/jpegs/jpegs.json', import.meta.url), 'utf8'),
);

export const jpegFiles: MutantKind = {
  name: 'JPEG',
  seeds() {
    const data = Uint8Array.from({ length: 4 * 40 * 24 }, (_, i) => (i * 31) % 256);
    const files = {
      'plain.jpg': Buffer.from(jpeg.encode({ width: 40, height: 24, data }, 80).data),
      'progressive.jpg': Buffer.from(recorded.files['JFIF, progressive']!.bytes, 'base64'),
      'grey.jpg': Buffer.from(recorded.files.grey!.bytes, 'base64'),
      'cmyk.jpg': Buffer.from(recorded.files.CMYK!.bytes, 'base64'),
    };
    return Object.entries(files).map(([name, bytes]) => ({ name, bytes, sites: jpegSites(bytes) }));
  },
  read,
  problemOf,
  tries: 2000,
  short: 100,
};
