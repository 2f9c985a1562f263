/** @file Sources of labelled images: their contract, and a folder for each class. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { Configurable } from '../../hparams/index.js';
import type { DataFile, DataFolder } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import type { RecordedState } from '../recordedParts.js';
import { type CorpusFile, readFiles, type SourceFile } from '../text/corpusFiles.js';
import { classFolderFields, filesByClass, recordedClasses } from './classFolders.js';
import type { ImageDecoder } from './imageDecoder.js';
import type { RawImage } from './rawImage.js';

/** An image with the id of its class, not decoded yet. */
export interface LabelledImage {
  readonly label: number;
  /** Its file, where it has one of its own. */
  readonly path?: string;
  /** @throws InputError with the unreadable file. */
  readonly pixels: (decode: ImageDecoder) => RawImage;
}

/** All images of a source, in an order that is the same on every machine. */
export interface ImageSet {
  readonly images: readonly LabelledImage[];
  readonly files: readonly DataFile[];
  /** The folder that holds them, where they are in many files. */
  readonly folder?: DataFolder;
  /** Names of the classes by id, where they have any. */
  readonly classes?: readonly string[];
  /** Digest of the data, or of the names and sizes of the files where these are many. */
  readonly digest: string;
}

/** Base of all sources of images. */
export abstract class BaseImageSource extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Names of the classes by id, where they are known without the images. */
  get classNames(): readonly string[] | null {
    return null;
  }

  /** A run's record of it, such as the classes that it found; null if its config is complete. */
  recorded(): RecordedState | null {
    return null;
  }

  /** Finds the images, and reads them where they are in few files. @throws InputError */
  abstract read(): ImageSet;
}

/** A short digest of texts and bytes. */
export const digestOf = (parts: Iterable<string | Uint8Array>): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 16);
};

const kind = { pattern: /\.(png|jpe?g)$/i, title: 'PNG and JPEG files', example: '1.png' };

/** PNG and JPEG files in a folder for each class: `photos/cat/1.png`, `photos/dog/2019/a.jpg`. */
export class ImageFolder extends BaseImageSource.with(classFolderFields) {
  #classes: readonly string[] | undefined;

  override get classNames(): readonly string[] | null {
    return this.hp.classes;
  }

  override recorded(): RecordedState | null {
    return recordedClasses(this.hp.classes ?? this.#classes);
  }

  override read(): ImageSet {
    const { classes, files, folder } = filesByClass(this.hp, kind);
    this.#classes = classes;
    const images = files.map(({ file, label }) => ({
      label,
      path: file.path,
      pixels: (decode: ImageDecoder) => decodeFile(file, decode),
    }));
    const names = files.map(({ file, label }) => `${label} ${file.name}\n`);
    return { images, files: [], folder, classes, digest: digestOf([classes.join('\n'), ...names]) };
  }
}

/** Decodes the image of a file. @throws InputError with its path */
function decodeFile(file: CorpusFile, decode: ImageDecoder): RawImage {
  const [{ bytes }] = readFiles([file]) as [SourceFile];
  return ofFile(file.path, () => decode(bytes));
}

/** The result of `read` for a file. @throws InputError whose subject is the file */
export function ofFile<T>(subject: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new InputError(`${subject} ${error.message}`, { cause: error });
  }
}

/** The bytes of an example that is a file: its path, or the bytes themselves; and its name in messages. @throws InputError */
export function fileOf(example: unknown, readsFiles: boolean): readonly [subject: string, bytes: Uint8Array] {
  if (example instanceof Uint8Array) return ['it', example];
  if (typeof example !== 'string' || !readsFiles) {
    const expected = readsFiles ? 'the path of a file or its bytes' : "a file's bytes";
    throw new InputError(`expected ${expected}, got ${typeof example}`);
  }
  const [{ path, bytes }] = readFiles([{ name: example, path: resolve(example) }]) as [SourceFile];
  return [path, bytes];
}
