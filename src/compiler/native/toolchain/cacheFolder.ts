/** @file Where the cache is: a folder of the user's own that no one else can write to. */
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { homedir, tmpdir, userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { CompilerError } from '../../types.js';

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

/**
 * Refuses a folder whose files someone else could exchange, for they are loaded as code. One that is not there is fine.
 *
 * @throws CompilerError that says how to mend it.
 */
export function checkFolder(path: string): void {
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return;
  const { uid, mode } = info;
  const own = process.getuid?.();
  if (own !== undefined && uid !== own) {
    throw new CompilerError(
      `The cache ${path} belongs to user ${uid}, not to ${userInfo().username} (${own}): ` +
        'remove it, or set XDG_CACHE_HOME to a folder of your own.',
    );
  }
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    throw new CompilerError(
      `The cache ${path} is open to other users (mode ${octal}), who could put code of theirs into it: ` +
        `look at what is in it, then chmod 700 ${path}.`,
    );
  }
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
  const path = mkdtempSync(join(tmpdir(), 'luthier-'));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/**
 * The folder that the environment names, made where it is not there; a temporary one where that can't be written.
 *
 * @throws CompilerError where it is there and not safe, or LUTHIER_CACHE_MB is no number.
 */
export function openFolder(env: NodeJS.ProcessEnv): CacheFolder {
  const path = cachePath(env);
  const limit = cacheLimit(env);
  try {
    makeFolder(path);
    checkFolder(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return { path, limit };
  } catch (error) {
    if (error instanceof CompilerError) throw error;
    const { message } = error as Error;
    const notice = `The cache ${path} can't be written (${message}): programs are compiled again by every process.`;
    return { path: temporaryFolder(), limit, notice };
  }
}
