/** @file Reading files that may be anything: never waits for a pipe, reads a device or loads an endless file. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { UnfitFileError } from './fileErrors.js';

/** Most bytes of a file that is read whole. */
const LONGEST = 1 << 30;

/**
 * Opens a regular file; anything else is refused without waiting.
 *
 * @param flags of open(2), such as O_RDONLY.
 * @returns the file's descriptor, which the caller closes.
 * @throws UnfitFileError, and the system's errors.
 */
export function openRegularFile(path: string, flags: number = constants.O_RDONLY): number {
  let file: number;
  try {
    // Without O_NONBLOCK, opening a pipe waits for its other end.
    file = openSync(path, flags | (constants.O_NONBLOCK ?? 0), 0o666);
  } catch (error) {
    // A socket, or a pipe without a reader.
    if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
    throw new UnfitFileError(`${path} is not a regular file`, { cause: error });
  }
  try {
    const status = fstatSync(file);
    if (status.isFile()) return file;
    throw new UnfitFileError(`${path} is not a regular file but ${kindOf(status)}`);
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function kindOf(status: Stats): string {
  if (status.isDirectory()) return 'a directory';
  if (status.isFIFO()) return 'a named pipe';
  return 'a device or socket';
}

/** Whether there is anything at a path, also a link to nothing. */
export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/**
 * A regular file's bytes.
 *
 * @throws UnfitFileError, also for a file of more than `longest` bytes; and the system's errors.
 */
export function readRegularFile(path: string, longest = LONGEST): Buffer {
  const file = openRegularFile(path);
  try {
    const { size } = fstatSync(file);
    if (size > longest) throw new UnfitFileError(`${path} has ${size} bytes; expected at most ${longest}`);
    const bytes = Buffer.allocUnsafe(size);
    return bytes.subarray(0, readFully(file, bytes, 0));
  } finally {
    closeSync(file);
  }
}

/** Fills `target` from a position of an open file. @returns the number of bytes read, fewer at the file's end. */
export function readFully(file: number, target: Uint8Array, position: number): number {
  let done = 0;
  while (done < target.length) {
    const count = readSome(file, target.subarray(done), position + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

function readSome(file: number, target: Uint8Array, position: number): number {
  for (;;) {
    try {
      return readSync(file, target, 0, Math.min(target.length, LONGEST), position);
    } catch (error) {
      // A signal interrupted reading, as on some file systems. Node repeats other calls, but not this one.
      if ((error as NodeJS.ErrnoException).code !== 'EINTR') throw error;
    }
  }
}
