/** @file The cache's folder, which only its owner can write to. */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { CompilerError } from '../../tensors.js';

/** A folder that is fit to be a cache. */
export interface CacheFolder {
  readonly path: string;
  /** Bytes that the entries may take together. */
  readonly limit: number;
  /** Why the entries will not be there the next time, where that is so. */
  readonly notice?: string;
}

const defaultMegabytes = 512;

/** `$XDG_CACHE_HOME/luthier`, or `~/.cache/luthier`. */
export function cachePath(env: NodeJS.ProcessEnv): string {
  const home = env.XDG_CACHE_HOME ?? '';
  return join(isAbsolute(home) ? home : join(env.HOME || homedir(), '.cache'), 'luthier');
}

/** Bytes from LUTHIER_CACHE_MB. */
export function cacheLimit(env: NodeJS.ProcessEnv): number {
  const text = env.LUTHIER_CACHE_MB;
  const megabytes = text === undefined || text.trim() === '' ? defaultMegabytes : Number(text);
  if (!(megabytes >= 0))
    throw new CompilerError(`LUTHIER_CACHE_MB: expected a number of megabytes, got '${text}'.`);
  return megabytes * 1e6;
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/** Refuses a folder whose files someone else could exchange, for they are loaded as code. */
function checkItself(path: string): void {
  const { uid, mode } = statSync(path);
  const own = process.getuid?.();
  if (own !== undefined && uid !== own) {
    throw new CompilerError(
      `The cache ${path} belongs to user ${uid}, not to ${userInfo().username} (${own}): ` +
        'remove it, or set XDG_CACHE_HOME to a folder of your own.',
    );
  }
  if (own !== undefined && (mode & 0o077) !== 0) {
    throw new CompilerError(
      `The cache ${path} is open to other users (mode ${octal(mode)}), who could put code of theirs into it: ` +
        `look at what is in it, then chmod 700 ${path}.`,
    );
  }
}

/**
 * Who could exchange the folder as a whole, where someone else could: whoever can write to a folder above it, or owns
 * one. In sticky folders, such as /tmp, everyone only exchanges what is theirs.
 *
 * @param path without symbolic links.
 */
function openAbove(path: string): string | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  // Whoever owns the root can do everything anyway; in containers that is not always user 0.
  const trusted = [own, 0, statSync('/').uid];
  for (let at = dirname(path); ; at = dirname(at)) {
    const { uid, gid, mode } = statSync(at);
    if (!trusted.includes(uid)) return `${at} belongs to user ${uid}, who could exchange it`;
    // A group of the user's alone has the user's number, by convention.
    const writers = mode & ([own, 0].includes(gid) ? 0o002 : 0o022);
    if (writers !== 0 && (mode & 0o1000) === 0)
      return `${at} is open to other users (mode ${octal(mode)}), who could exchange it`;
    if (at === dirname(at)) return undefined;
  }
}

const mending = 'Set XDG_CACHE_HOME to a folder of your own.';

/**
 * Refuses a folder that someone else could write to or exchange. One that is not there is fine.
 *
 * @returns the folder's path without symbolic links, which could be changed after this.
 * @throws CompilerError that says how to mend it.
 */
export function checkFolder(path: string): string {
  if (!existsSync(path)) return path;
  checkItself(path);
  const real = realpathSync(path);
  const why = openAbove(real);
  if (why !== undefined) throw new CompilerError(`The cache ${path} is not safe: ${why}. ${mending}`);
  return real;
}

/** `mkdirSync` with `recursive` never returns below folders that are not what they seem, such as /proc. */
function makeFolder(path: string): void {
  if (!existsSync(dirname(path))) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** A folder for this process alone, gone when it ends. */
function temporaryFolder(): string {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'luthier-'));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  const why = openAbove(path);
  if (why === undefined) return path;
  throw new CompilerError(
    `The temporary folder ${path} is not safe: ${why}. Set TMPDIR to a folder of your own.`,
  );
}

/**
 * The folder that the environment names, made where it is not there; a temporary one where that can't be written or is
 * in a place that is not safe.
 *
 * @throws CompilerError where it is there and not safe itself, or LUTHIER_CACHE_MB is no number.
 */
export function openFolder(env: NodeJS.ProcessEnv): CacheFolder {
  const path = cachePath(env);
  const limit = cacheLimit(env);
  const instead = (why: string): CacheFolder => ({
    path: temporaryFolder(),
    limit,
    notice: `The cache ${path} ${why}: programs are compiled again by every process. ${mending}`,
  });
  try {
    makeFolder(path);
    checkItself(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    const real = realpathSync(path);
    const why = openAbove(real);
    return why === undefined ? { path: real, limit } : instead(`is not used, for ${why}`);
  } catch (error) {
    if (error instanceof CompilerError) throw error;
    return instead(`can't be written (${(error as Error).message})`);
  }
}
