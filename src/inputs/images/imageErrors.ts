/** @file Errors of image files, whose messages continue from the file's name, and the check of their sizes. */
import { InputError } from '../inputErrors.js';

/** Pixels of a megapixel. */
export const MEGAPIXEL = 2 ** 20;

/** The error of a file that is damaged. */
export const damaged = (kind: string, problem: string): InputError =>
  new InputError(`is a damaged ${kind} image: ${problem}`);

/** @throws InputError for an image without pixels, and for one of more than `mostPixels` */
export function checkSize(kind: string, width: number, height: number, mostPixels: number): void {
  if (width === 0 || height === 0) throw damaged(kind, `it has ${width} × ${height} pixels`);
  if (width * height > mostPixels)
    throw new InputError(
      `is a ${kind} image of ${width} × ${height} pixels, ${Math.ceil((width * height) / MEGAPIXEL)} megapixels: ` +
        `maxMegapixels allows ${mostPixels / MEGAPIXEL}. Make it smaller, or raise maxMegapixels if you trust the file`,
    );
}
