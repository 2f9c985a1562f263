/**
 * @file Stacks of errors with the user's line first. A mistake in a layer is found by tfjs or by the tracer, a dozen calls
 * below the line to mend.
 */
import { existsSync } from 'node:fs';
import { dirname, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const FRAME = /^\s*at (?:async )?(?:.*? \()?((?:file:\/\/|[A-Za-z]:[\\/]|\/|\.)[^()]*?):\d+:\d+\)?$/;

/** Frames that are told beside the user's. */
const MOST_FRAMES = 10;

/** Frames that are kept while layers run: enough for those of tfjs and of the tracer, and the layer's behind them. */
export const DEEP = 50;

function fileOf(line: string): string | undefined {
  const file = FRAME.exec(line)?.[1]?.replace(/\?.*$/, '');
  return file?.startsWith('file://') ? fileURLToPath(file) : file;
}

/** The folders of the compiler: with source maps, frames name the sources, which may stand elsewhere than what runs. */
const compilers = [fileURLToPath(new URL('.', import.meta.url)), `${dirname(ownFile() ?? '.')}${sep}`];
/** The folders of all of the library. */
const libraries = compilers.map((folder) => `${dirname(folder)}${sep}`);

function ownFile(): string | undefined {
  return (new Error().stack ?? '').split('\n').map(fileOf).find(Boolean);
}

const isIn = (file: string, folders: readonly string[]): boolean =>
  folders.some((folder) => file.startsWith(folder));
/** With source maps, frames of packages name files that were never installed. */
const isForeign = (file: string): boolean => /[\\/]node_modules[\\/]/.test(file) || !existsSync(file);

/** The first frame of code that is not the library's; else the first of it that is not the compiler's. */
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

/** Stacks as they were. */
const original = new WeakMap<Error, string>();

/**
 * Gives an error a stack that begins with its message as it is now, and the user's line.
 *
 * @param cause of which error the frames are; of this one by default.
 */
export function showUsersFrame(error: Error, cause = error): void {
  const stack = original.get(cause) ?? cause.stack ?? '';
  original.set(error, stack);
  const frames = stack.split('\n').filter((line) => /^\s*at /.test(line));
  const own = usersFrame(frames);
  const rest = frames.filter((line) => line !== own).slice(0, MOST_FRAMES);
  const lines = [`${error.name}: ${error.message}`, ...(own === undefined ? [] : [shortened(own)]), ...rest];
  Object.defineProperty(error, 'stack', { value: lines.join('\n'), configurable: true, writable: true });
}
