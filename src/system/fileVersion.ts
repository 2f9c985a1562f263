/** @file Versions of files, by the system's own description of a file, which changes with every write. */
import { type BigIntStats, fstatSync, statSync } from 'node:fs';

/** Largest step of the clocks that systems take file times from, in milliseconds. */
const CLOCK_STEP = 20;

/**
 * Size, time of the last write, time of the last change, inode. Programs set the second as they like (`cp -p`, `rsync -t`,
 * archives), and the third never. Equal versions mean equal bytes; other ones may be of equal bytes, too.
 */
export const versionOf = ({ size, mtimeNs, ctimeNs, ino }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ctimeNs} ${ino}`;

const look = (file: string | number): BigIntStats =>
  typeof file === 'number' ? fstatSync(file, { bigint: true }) : statSync(file, { bigint: true });

/**
 * The version of a file, once it is old enough: whoever writes from now on gives it another one. Two writes within one step of
 * the clock have the same times, so that this waits 20 ms at most.
 *
 * @param file its path or descriptor.
 * @throws the system's error.
 */
export function settledVersion(file: string | number): string {
  const age = Date.now() - Number(look(file).ctimeNs / 1_000_000n);
  if (Math.abs(age) < CLOCK_STEP) {
    const neverNotified = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(neverNotified, 0, 0, CLOCK_STEP - Math.max(0, age));
  }
  return versionOf(look(file));
}
