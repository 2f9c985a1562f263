/** @file Builds that failed through the fault of neither source nor compiler: a retry may succeed. */
import { NativeEngineError } from '../../program/tensors.js';
import type { Ended } from './process.js';

/** A build failure that says nothing about the source. */
export class InterruptedBuild extends NativeEngineError {
  override readonly name = 'InterruptedBuild';
}

/** Messages of gcc's and clang's drivers where a subprocess was killed, or memory, disk space or a file was missing. */
const systemSays =
  /Killed|signal terminated|due to signal|out of memory|memory exhausted|Cannot allocate memory|(cannot|unable to) execute|execvp|posix_spawn|error writing|Input\/output error|Read-only file system|Permission denied/i;

/**
 * Whether a compiler has examined the source, or an option, and rejected it. One that was killed, or lacked memory,
 * disk space or a subprogram, has not.
 */
export const isRefusal = ({ code, output }: Ended): boolean =>
  typeof code === 'number' && /\berror:/i.test(output) && !systemSays.test(output) && !isDiskFull(output);

/** Whether a system error, by code or text, is due to a full disk or quota. */
export const isDiskFull = (said: string): boolean =>
  /\b(ENOSPC|EDQUOT)\b|No space left on device|Disk quota exceeded/i.test(said);

/** @param name of the program that was being compiled. @param cache the folder without space. */
export const diskFullError = (name: string, cache: string): InterruptedBuild =>
  new InterruptedBuild(
    `${name}: the disk that the cache ${cache} is on is full. Make room there, \`npx luthier cache clear\` removes ` +
      'what no process uses; or set XDG_CACHE_HOME to a folder on another disk.',
  );
