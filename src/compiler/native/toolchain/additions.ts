/** @file How much all processes have added to a cache since one looked at its size, which takes time. */
import { closeSync, constants, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRegularFile, readRegularFile, removeQuietly } from '../../../files/index.js';

/** What was looked at in the first line, then the bytes of each addition. */
const FILE = 'added';

const firstLine = (limit: number): string => `at most ${limit}`;

/** Looking is worth it where this part of the limit has been added. */
const worthLooking = 1 / 100;

const fileOf = (path: string): string => join(path, FILE);

/** Notes an addition. @returns whether the cache may have become too large since someone looked, or none has. */
export function noteAddition(path: string, limit: number, bytes: number): boolean {
  const file = openRegularFile(fileOf(path), constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
  try {
    writeFileSync(file, `${bytes}\n`);
  } finally {
    closeSync(file);
  }
  const [first, ...added] = readRegularFile(fileOf(path)).toString().trimEnd().split('\n');
  // Where the file begins with an addition, nobody has looked.
  return first !== firstLine(limit) || added.map(Number).reduce((a, b) => a + b) > limit * worthLooking;
}

/** Says that the cache is no larger than this. */
export function noteSize(path: string, limit: number): void {
  writeFileSync(fileOf(path), `${firstLine(limit)}\n`);
}

/** The next addition has the size looked at. */
export function forgetAdditions(path: string): void {
  removeQuietly(fileOf(path));
}
