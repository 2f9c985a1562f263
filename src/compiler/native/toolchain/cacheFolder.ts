/** @file Cache folder, writable by its owner only. */
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { NativeEngineError } from '../../program/tensors.js';

/** A folder that is safe to use as the cache. */
export interface CacheFolder {
  readonly path: string;
  /** Most bytes of all entries together, which each process may exceed by a sixteenth. */
  readonly limit: number;
  /** Why entries will not survive this process, if so. */
  readonly notice?: string;
}

const defaultMegabytes = 512;

/** `$XDG_CACHE_HOME/luthier`, or `~/.cache/luthier`. */
export function cachePath(env: NodeJS.ProcessEnv): string {
  const home = env.XDG_CACHE_HOME ?? '';
  return join(isAbsolute(home) ? home : join(env.HOME || homedir(), '.cache'), 'luthier');
}

/** Cache limit in bytes, from LUTHIER_CACHE_MB. */
export function cacheLimit(env: NodeJS.ProcessEnv): number {
  const text = env.LUTHIER_CACHE_MB;
  const megabytes = text === undefined || text.trim() === '' ? defaultMegabytes : Number(text);
  if (!(megabytes >= 0))
    throw new NativeEngineError(`LUTHIER_CACHE_MB: expected a number of megabytes, got '${text}'.`);
  return megabytes * 1e6;
}

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, '0');

/** Closes an empty folder into which nobody else can have put anything. */
function mended(path: string, mode: number): boolean {
  if ((mode & 0o022) !== 0 || readdirSync(path).length > 0) return false;
  chmodSync(path, 0o700);
  return true;
}

/** Rejects a folder in which another user could replace files, since they are loaded as code. */
function checkItself(path: string): void {
  const { uid, mode } = statSync(path);
  const own = process.getuid?.();
  if (own !== undefined && uid !== own) {
    throw new NativeEngineError(
      `The cache ${path} belongs to user ${uid}, not to ${userInfo().username} (${own}): ` +
        'remove it, or set XDG_CACHE_HOME to a folder of your own.',
    );
  }
  if (own !== undefined && (mode & 0o077) !== 0 && !mended(path, mode)) {
    throw new NativeEngineError(
      `The cache ${path} is open to other users (mode ${octal(mode)}), who could put code of theirs into it: ` +
        `look at what is in it, then chmod 700 ${path}.`,
    );
  }
}

/**
 * Describes who could replace the folder as a whole: anyone who can write to a folder above it, or owns one. In sticky
 * folders, such as /tmp, users can only replace their own entries.
 *
 * @param path without symbolic links.
 */
function openAbove(path: string): string | undefined {
  const own = process.getuid?.();
  if (own === undefined) return undefined;
  // The owner of the root can do everything anyway; in containers that is not always user 0.
  const trusted = [own, 0, statSync('/').uid];
  for (let at = dirname(path); ; at = dirname(at)) {
    const { uid, gid, mode } = statSync(at);
    if (!trusted.includes(uid)) return `${at} belongs to user ${uid}, who could exchange it`;
    // By convention, a group with the user's number contains only that user.
    const writers = mode & ([own, 0].includes(gid) ? 0o002 : 0o022);
    if (writers !== 0 && (mode & 0o1000) === 0)
      return `${at} is open to other users (mode ${octal(mode)}), who could exchange it`;
    if (at === dirname(at)) return undefined;
  }
}

const mending = 'Set XDG_CACHE_HOME to a folder of your own.';

/**
 * Rejects a folder that another user could write to or replace. A missing one is fine.
 *
 * @returns the path with symbolic links resolved, which could be changed later.
 * @throws NativeEngineError that says how to fix it.
 */
export function checkFolder(path: string): string {
  if (!existsSync(path)) return path;
  checkItself(path);
  const real = realpathSync(path);
  const why = openAbove(real);
  if (why !== undefined) throw new NativeEngineError(`The cache ${path} is not safe: ${why}. ${mending}`);
  return real;
}

/** Makes a folder of the cache. `mkdirSync` with `recursive` loops forever below special folders such as /proc. */
export function makeFolder(path: string): void {
  if (!existsSync(dirname(path))) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** A folder for this process alone, removed when it ends. */
function temporaryFolder(): string {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'luthier-'));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  const why = openAbove(path);
  if (why === undefined) return path;
  throw new NativeEngineError(
    `The temporary folder ${path} is not safe: ${why}. Set TMPDIR to a folder of your own.`,
  );
}

/**
 * Opens the folder that the environment names, creating it if needed; falls back to a temporary one if that can't be
 * written or is in an unsafe place.
 *
 * @throws NativeEngineError where the folder itself is unsafe, or LUTHIER_CACHE_MB is not a number.
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
    if (error instanceof NativeEngineError) throw error;
    return instead(`can't be written (${(error as Error).message})`);
  }
}
