/**
 * @file Error stacks that start with the user's line. tfjs or the tracer detect a mistake in a layer a dozen calls
 * below the line to fix.
 */
import { existsSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const FRAME = /^\s*at (?:async )?(?:.*? \()?((?:file:\/\/|[A-Za-z]:[\\/]|\/|\.)[^()]*?):\d+:\d+\)?$/;

/** Frames kept beside the user's. */
const MOST_FRAMES = 10;

/** Stack depth while layers run: frames of tfjs and the tracer, then half a dozen for each layer in another. */
export const DEEP = 200;

function fileOf(line: string): string | undefined {
  const file = FRAME.exec(line)?.[1]?.replace(/\?.*$/, '');
  return file?.startsWith('file://') ? fileURLToPath(file) : file;
}

/** Folders of the compiler: with source maps, frames name sources, which may be elsewhere than the running code. */
const compilers = [fileURLToPath(import.meta.url), ownFile() ?? ''].map((file) => folderAbove(file, 2));
/** Folders of the whole library. */
const libraries = compilers.map((folder) => folderAbove(folder, 1));

/** The folder so many levels above a file or a folder, with a separator at its end. */
function folderAbove(path: string, levels: number): string {
  return `${join(path, ...Array<string>(levels).fill('..'))}${sep}`;
}

function ownFile(): string | undefined {
  return (new Error().stack ?? '').split('\n').map(fileOf).find(Boolean);
}

const isIn = (file: string, folders: readonly string[]): boolean =>
  folders.some((folder) => file.startsWith(folder));
/** With source maps, frames of packages may name files that were never installed. */
const isForeign = (file: string): boolean => /[\\/]node_modules[\\/]/.test(file) || !existsSync(file);

/** The first frame outside of the library, else the first outside of the compiler. */
function usersFrame(frames: readonly string[]): string | undefined {
  const outside = (folders: readonly string[]) =>
    frames.find((line) => {
      const file = fileOf(line);
      return file !== undefined && !isForeign(file) && !isIn(file, folders);
    });
  return outside(libraries) ?? outside(compilers);
}

function shortened(line: string): string {
  const file = fileOf(line)!;
  const short = relative(process.cwd(), file);
  if (short.startsWith('..')) return line;
  return line.replace(/(?:file:\/\/)?[^\s()]*?(:\d+:\d+\)?)$/, `${short.replaceAll('\\', '/')}$1`);
}

const framesOf = (stack: string): string[] => stack.split('\n').filter((line) => /^\s*at /.test(line));

/** The user's line of a call, as 'Mine.fprop (experiments/mine.ts:12:20)'; undefined where none is known. */
export function usersPlace(call: Error): string | undefined {
  const frame = usersFrame(framesOf(call.stack ?? ''));
  return frame === undefined ? undefined : shortened(frame).replace(/^\s*at /, '');
}

/** Original stacks. */
const original = new WeakMap<Error, string>();

/**
 * Rewrites an error's stack to start with its current message and the user's line.
 *
 * @param cause the error whose frames are used; by default, this one.
 */
export function showUsersFrame(error: Error, cause = error): void {
  const stack = original.get(cause) ?? cause.stack ?? '';
  original.set(error, stack);
  const frames = framesOf(stack);
  const own = usersFrame(frames);
  const rest = frames.filter((line) => line !== own).slice(0, MOST_FRAMES);
  const lines = [`${error.name}: ${error.message}`, ...(own === undefined ? [] : [shortened(own)]), ...rest];
  Object.defineProperty(error, 'stack', { value: lines.join('\n'), configurable: true, writable: true });
}
