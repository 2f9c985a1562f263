/** @file The bytes of a corpus's files. */

import { readFileSync } from 'node:fs';
import { InputError } from './errors.js';
import type { CorpusFile } from './files.js';

/** A file of a corpus with what it holds. */
export interface SourceFile extends CorpusFile {
  readonly bytes: Uint8Array;
}

/** Reads files whole. @throws InputError that names the file and the system's reason */
export function readFiles(files: readonly CorpusFile[]): SourceFile[] {
  return files.map((file) => {
    try {
      const { buffer, byteOffset, byteLength } = readFileSync(file.path);
      return { ...file, bytes: new Uint8Array(buffer, byteOffset, byteLength) };
    } catch (error) {
      throw new InputError(`${file.path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  });
}
