/** @file Builds interrupted by neither the source's fault nor the compiler's: the next one may succeed. */
import { CompilerError } from '../../tensors.js';
import type { Ended } from './process.js';

/** A build that says nothing about its source. */
export class InterruptedBuild extends CompilerError {
  override readonly name = 'InterruptedBuild';
}

/** What the drivers of gcc and clang say where a tool of theirs was killed, or the system gave no memory, room or file. */
const systemSays =
  /Killed|signal terminated|due to signal|out of memory|memory exhausted|Cannot allocate memory|(cannot|unable to) execute|execvp|posix_spawn|error writing|Input\/output error|Read-only file system|Permission denied/i;

/**
 * Whether a compiler has looked at the source and refused it, or an option for it. One that was killed, or lacked memory,
 * room or a tool of its own, has not.
 */
export const isRefusal = ({ code, output }: Ended): boolean =>
  typeof code === 'number' && /\berror:/i.test(output) && !systemSays.test(output) && !isDiskFull(output);

/** Whether a system's error, by its code or its text, comes of a disk, or a user's share of it, that is full. */
export const isDiskFull = (said: string): boolean =>
  /\b(ENOSPC|EDQUOT)\b|No space left on device|Disk quota exceeded/i.test(said);

/** @param name what could not be compiled. @param cache the folder that had no room for it. */
export const diskFullError = (name: string, cache: string): CompilerError =>
  new InterruptedBuild(
    `${name}: the disk that the cache ${cache} is on is full. Make room there, \`npx luthier cache clear\` removes ` +
      'what no process uses; or set XDG_CACHE_HOME to a folder on another disk.',
  );
