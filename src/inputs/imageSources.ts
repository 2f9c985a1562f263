/** @file Sources of labelled images: their contract, and a folder for each class. */
import { createHash } from 'node:crypto';
import { Configurable } from '../hparams/index.js';
import { classFolderFields, filesByClass } from './classFolders.js';
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
  /** Names of the classes by id, where they have any. */
  readonly classes?: readonly string[];
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

/** PNG and JPEG files in a folder for each class: `photos/cat/1.png`, `photos/dog/a.jpg`. */
export class ImageFolder extends BaseImageSource.with(classFolderFields) {
  override read(): ImageSet {
    const { classes, files } = filesByClass(this.hp, /\.(png|jpe?g)$/i, '1.png');
    const images = files.map(({ file, label }) => ({
      label,
      pixels: (decode: ImageDecoder) => decodeFile(file, decode),
    }));
    const names = files.map(({ file, label }) => `${label} ${file.name}\n`);
    return { images, files: [], classes, digest: digestOf([classes.join('\n'), ...names]) };
  }
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
