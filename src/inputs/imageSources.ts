/** @file Sources of labelled images: their contract, and a folder for each class. */
import { createHash } from 'node:crypto';
import { type Dirent, readdirSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { type CorpusFile, readFiles, type SourceFile } from './corpusFiles.js';
import type { DataFile } from './dataIdentity.js';
import { InputError } from './inputErrors.js';
import type { ImageDecoder, RawImage } from './rawImage.js';

/** An image with the id of its class, not decoded yet. */
export interface LabelledImage {
  readonly label: number;
  /** @throws InputError with the file of what cannot be read. */
  readonly pixels: (decode: ImageDecoder) => RawImage;
}

/** All images of a source, in an order that is the same on every machine. */
export interface ImageSet {
  readonly images: readonly LabelledImage[];
  readonly files: readonly DataFile[];
  /** Digest of the data, or of the names and sizes of the files where these are many. */
  readonly digest: string;
}

/** Base of all sources of images. */
export abstract class BaseImageSource extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Finds the images, and reads them where they are in few files. @throws InputError */
  abstract read(): ImageSet;
}

/** A short digest of texts and bytes. */
export const digestOf = (parts: Iterable<string | Uint8Array>): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 16);
};

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** PNG and JPEG files in a folder for each class: `photos/cat/1.png`, `photos/dog/a.jpg`. */
export class ImageFolder extends BaseImageSource.with({
  directory: z.string().min(1).describe('The folder that holds the folders of the classes.'),
  classes: z
    .array(z.string())
    .min(2)
    .nullable()
    .default(null)
    .describe('Names of the folders to read, in the order of their ids; null: all folders, by name.'),
}) {
  override read(): ImageSet {
    const { directory } = this.hp;
    const folders = entriesOf(directory).filter((entry) => entry.isDirectory());
    const found = folders.map(({ name }) => name).filter((name) => !name.startsWith('.'));
    const classes = this.hp.classes ?? found.sort(byCodeUnit);
    const missing = classes.find((name) => !found.includes(name));
    if (missing !== undefined)
      throw new InputError(`${resolve(directory)} has no folder '${missing}'. It has: ${found.join(', ')}.`);
    const labelled = classes.flatMap((name, label) =>
      imagesIn(posix.join(directory, name)).map((file) => ({ file, label })),
    );
    const images = labelled.map(({ file, label }) => ({
      label,
      pixels: (decode: ImageDecoder) => decodeFile(file, decode),
    }));
    const names = labelled.map(({ file, label }) => `${label} ${file.name}\n`);
    return { images, files: [], digest: digestOf([classes.join('\n'), ...names]) };
  }
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    throw new InputError(`${resolve(directory)} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function imagesIn(folder: string): CorpusFile[] {
  return entriesOf(folder)
    .map(({ name }) => name)
    .filter((name) => /\.(png|jpe?g)$/i.test(name))
    .sort(byCodeUnit)
    .map((name) => ({ name: posix.join(folder, name), path: resolve(join(folder, name)) }));
}

function decodeFile(file: CorpusFile, decode: ImageDecoder): RawImage {
  const [{ bytes }] = readFiles([file]) as [SourceFile];
  try {
    return decode(bytes);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(`${file.path} ${error.message}`, { cause: error });
  }
}
