/** @file Compressed files, unpacked once into the cache. */
import { spawnSync } from 'node:child_process';
import { statfsSync, statSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { versionOf } from '../../system/index.js';
import { FileError, InputError } from '../inputErrors.js';
import { cachedFile, type DataCache } from './dataCache.js';

/** Format by the end of a file's name. */
const FORMATS: Readonly<Record<string, 'gzip' | 'zstd'>> = {
  '.gz': 'gzip',
  '.gzip': 'gzip',
  '.zst': 'zstd',
  '.zstd': 'zstd',
};
const CACHE: DataCache = { name: 'unpacked', mostBytes: 64 * 2 ** 30 };
const SCRIPT = fileURLToPath(new URL('./decompress.cjs', import.meta.url));

/** A file's bytes without their compression. */
interface Unpacked {
  /** The file's own, or that of a file of the cache. */
  readonly path: string;
  /** The version of the file that one of the cache was made from. */
  readonly source?: string;
}

/** Part of the free space that files may take by default. */
const PART_OF_SPACE = 0.9;

/**
 * A file's bytes without their compression, by gzip or Zstandard as its name says.
 *
 * @param most bytes that it may have; by default, the free space of the cache less a tenth.
 * @throws InputError for a damaged file, and for one that has more bytes; FileError where it can't be read or the cache can't be written.
 */
export function decompressed(path: string, most?: number): Unpacked {
  const format = FORMATS[extname(path).toLowerCase()];
  if (format === undefined) return { path };
  try {
    const source = { path, version: versionOf(statSync(path, { bigint: true })) };
    const unpacked = cachedFile(CACHE, source, [], (to) => decompress(format, path, to, most));
    // One that was unpacked under another bound.
    if (most !== undefined && statSync(unpacked).size > most) throw tooLong(path, unpacked, most, most);
    return { path: unpacked, source: source.version };
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new FileError(
      `${path} cannot be unpacked: ${(error as Error).message}. Files are unpacked into the cache; XDG_CACHE_HOME sets its place.`,
      { cause: error },
    );
  }
}

function tooLong(from: string, to: string, bound: number, most: number | undefined): InputError {
  const reason =
    most === undefined
      ? `, the free space of ${dirname(to)} less a tenth. Free some space, set another place for the cache by XDG_CACHE_HOME, or set another bound`
      : '. Set another bound';
  return new InputError(
    `${from} has more than ${bound} bytes when unpacked${reason} in the source's field mostUnpackedBytes.`,
  );
}

function decompress(format: 'gzip' | 'zstd', from: string, to: string, most: number | undefined): void {
  const bound = most ?? freeSpace(dirname(to));
  const { status, signal, stderr, error } = spawnSync(
    process.execPath,
    [SCRIPT, format, from, to, `${bound}`],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
    },
  );
  if (error !== undefined) throw error;
  if (status === 0) return;
  if (signal !== null) throw new FileError(`${from} was not unpacked: ${signal}.`);
  let failure: { readonly message: string; readonly byte: number; readonly most?: true };
  try {
    failure = JSON.parse(stderr);
  } catch (cause) {
    throw new Error(stderr.trim(), { cause });
  }
  if (failure.most) throw tooLong(from, to, bound, most);
  throw new InputError(
    `${from}, byte ${failure.byte}: the ${format} data is damaged or cut off: ${failure.message}.`,
  );
}

function freeSpace(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return Math.floor(PART_OF_SPACE * bavail * bsize);
}
