/** @file Decoding of image files: PNG and JPEG, and other kinds by name. */
import { createRequire } from 'node:module';
import { InputError } from '../inputErrors.js';
import { damaged } from './imageErrors.js';
import { jpegHeader } from './jpegHeader.js';
import { decodePng } from './pngImage.js';
import type { RawImage } from './rawImage.js';

/** Reads an image from a file's bytes. @throws InputError with the reason, which continues from the file's name */
export type ImageDecoder = (bytes: Uint8Array) => RawImage;

const isPng = (bytes: Uint8Array): boolean => bytes[0] === 0x89 && bytes[1] === 0x50;
const isJpeg = (bytes: Uint8Array): boolean => bytes[0] === 0xff && bytes[1] === 0xd8;

/** First bytes of images of other kinds; dots stand for any. */
const otherKinds: Readonly<Record<string, RegExp>> = {
  WebP: /^RIFF.{4}WEBP/s,
  GIF: /^GIF8[79]a/,
  BMP: /^BM.{4}\0{4}/s,
  TIFF: /^(II\*|MM.\*)/s,
  AVIF: /^.{4}ftypavi[fs]/s,
  HEIF: /^.{4}ftyp(hei[cx]|mif1|msf1)/s,
  'JPEG XL': /^(.{4}JXL |ÿ\n)/s,
  'JPEG 2000': /^.{4}jP {2}/s,
};

function otherKind(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  return Object.keys(otherKinds).find((name) => otherKinds[name]!.test(start));
}

/** Loaded with the first JPEG file: most programs do without. */
const jpegLibrary = (): typeof import('jpeg-js') => createRequire(import.meta.url)('jpeg-js');

/**
 * The decoder of PNG and JPEG files.
 *
 * @param mostPixels pixels of the largest image that is decoded
 */
export function imageDecoder(mostPixels: number): ImageDecoder {
  function decodeJpeg(bytes: Uint8Array): RawImage {
    const { height, width, blocks, storesRgb } = jpegHeader(bytes, mostPixels);
    try {
      const { data } = jpegLibrary().decode(bytes, {
        useTArray: true,
        formatAsRGBA: false,
        tolerantDecoding: false,
        maxResolutionInMP: mostPixels / 1e6,
        // By its own count: coefficients and samples of a block, tables, and two images.
        maxMemoryUsageInMB: (320 * blocks + 8 * height * width + 4 * bytes.length) / 2 ** 20 + 1,
        // It knows nothing of components that are red, green and blue already.
        ...(storesRgb && { colorTransform: false }),
      });
      return { height, width, channels: 3, data };
    } catch (error) {
      // It trusts the file's description of its tables.
      const isFound = error instanceof TypeError || error instanceof RangeError;
      throw damaged('JPEG', isFound ? 'its tables do not match its data' : (error as Error).message);
    }
  }

  return (bytes) => {
    if (isPng(bytes)) return decodePng(bytes, mostPixels);
    if (isJpeg(bytes)) return decodeJpeg(bytes);
    const other = otherKind(bytes);
    throw new InputError(
      other === undefined
        ? 'is neither a PNG nor a JPEG image'
        : `is a ${other} image: expected PNG or JPEG. Convert it.`,
    );
  };
}
